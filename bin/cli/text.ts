/** A text from elsewhere on one line: what would move the cursor or colour the screen is spelt out. */
// oxlint-disable-next-line no-control-regex
export const oneLine = (text: string): string => text.replaceAll(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** The same for text of several lines. */
export const manyLines = (text: string): string => text.split(/\r?\n/).map(oneLine).join('\n')

/** Columns as wide as their widest cell, two spaces between them; no spaces at the ends of lines. */
export function columns (rows: ReadonlyArray<readonly string[]>, paint: (cell: string, column: number, row: number) => string = (cell) => cell): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row, at) => {
    const last = row.findLastIndex((cell) => cell !== '')
    return row.slice(0, last + 1).map((cell, column) => paint(cell, column, at) + (column === last ? '' : ' '.repeat((widths[column] ?? 0) - cell.length))).join('  ')
  })
}
