/** What Node's parser takes that RFC 9112's grammar has not, and why that stays. Each names the bytes that the client might as well have sent. */
export interface Tolerance {
  readonly name: string
  readonly why: string
  readonly meant: (sent: string) => string
}

export const tolerances: readonly Tolerance[] = [
  {
    name: 'line ends before a request',
    why: 'RFC 9112 section 2.2 asks servers to pass over an empty line there; the parser passes over a single CR or LF, too, as nginx does. Nothing of them is forwarded.',
    meant: (sent) => sent.replaceAll(/(^|\r\n\r\n)[\r\n]+(?=[A-Z]+ \S+ HTTP)/g, '$1')
  },
  {
    name: 'several spaces in a request line',
    why: 'RFC 9112 section 3 allows to split the line at white space. What is forwarded has one space.',
    meant: (sent) => sent.replaceAll(/^([A-Z]+) +(\S+) +(HTTP\/1\.[01]\r\n)/gm, '$1 $2 $3')
  }
]
