import type { FastifyInstance, FastifyReply } from 'fastify'
import { ExchangeError } from '../../lib/exchange.ts'
import { answererOf, refuse, setAnswerer, type Answerer } from '../refusal.ts'

type Send = (this: FastifyReply, payload?: unknown) => FastifyReply

/** Somebody of the app has begun to answer. What becomes of that is the app's business. */
const somebody: Answerer = { giveWay: () => true, takeBack () {} }

/**
 * Holds every request of the scope to one answer. Fastify knows an answer only once it is written: while an asynchronous onSend
 * hook is at work on one, it would take a second (of a handler time limit, of a handler that answers after all) and mix the two.
 * So the first one to be sent counts: a forward ends when somebody else answers, and once its own answer is on its way, a further
 * one is dropped, as Fastify itself does a little later.
 */
export function guardAnswers (app: FastifyInstance): void {
  let below: Send | null = null

  function send (this: FastifyReply, payload?: unknown): FastifyReply {
    below ??= sendBelow(this, send)
    const answerer = answererOf(this.raw)
    if (answerer === undefined) {
      // The failure of a forward whose answer had been handed up. No error handler of the app wanted to answer it.
      if (payload instanceof ExchangeError) return refuse(this, payload.reason)
      // An error is not the answer yet: an error handler makes it.
      if (!(payload instanceof Error)) setAnswerer(this.raw, somebody)
    } else if (!answerer.giveWay()) {
      this.log.warn('a second answer was dropped: one is on its way already')
      return this
    }
    return below.call(this, payload)
  }

  app.decorateReply('send', send as FastifyReply['send'])

  // Called for errors only: whatever was on its way will not be sent.
  app.addHook('onError', (_request, reply, _error, done) => {
    const answerer = answererOf(reply.raw)
    setAnswerer(reply.raw, undefined)
    answerer?.takeBack()
    done()
  })
}

/** The `send` that ours stands before: Fastify's own, or another decoration's of an outer scope. */
function sendBelow (reply: FastifyReply, ours: Send): Send {
  let proto = Object.getPrototypeOf(reply) as { send: Send }
  while (!Object.hasOwn(proto, 'send') || proto.send !== ours) proto = Object.getPrototypeOf(proto) as { send: Send }
  return (Object.getPrototypeOf(proto) as { send: Send }).send
}
