/**
 * True for a request that came on a stream of HTTP/2. The version alone does not tell: Node's HTTP/1 parser lets a request line with
 * `HTTP/2.0` through.
 */
export const isHttp2 = (raw: object): boolean => 'stream' in raw
