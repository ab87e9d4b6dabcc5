import { createServer } from 'node:net'

/** Below every system's range of ports that it gives out by itself: one that is free for a while, as its server is dead, stays free. */
const lowest = 10_000
const range = 20_000
/** Processes that play drills at the same time begin far from each other. */
let next = process.pid * 61 % range

const isFree = (port: number): Promise<boolean> => new Promise(resolve => {
  const server = createServer()
  server.once('error', () => resolve(false))
  server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
})

/** `count` ports of 127.0.0.1, all different, that are given to nobody else in this process. @throws when there are none */
export async function steadyPorts (count: number): Promise<number[]> {
  const ports: number[] = []
  for (let tries = 0; tries < range && ports.length < count; tries++) {
    const port = lowest + next
    next = (next + 1) % range
    if (await isFree(port)) ports.push(port)
  }
  if (ports.length < count) throw new Error(`there are no ${count} free ports`)
  return ports
}
