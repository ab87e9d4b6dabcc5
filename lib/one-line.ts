/**
 * What a terminal, or a reader's eye, would take for more than text: controls of both sets (ESC, CR, CSI), line and paragraph
 * separators, and what is not seen but changes what is: bidirectional controls, zero widths, tags, halves of pairs.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const spelt = (char: string): string => Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')

/** A text from elsewhere on one line: what would move the cursor, colour the screen or turn the text around is spelt out. */
export const oneLine = (text: string): string => text.replaceAll(unseen, spelt)

/** The same for text of several lines. */
export const manyLines = (text: string): string => text.split(/\r?\n/).map(oneLine).join('\n')

/** As JSON on one line, in which the same is escaped: it is the same value for who reads JSON. */
export const jsonLine = (value: unknown): string => oneLine(JSON.stringify(value) ?? 'null')
