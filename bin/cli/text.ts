/** Columns as wide as their widest cell, two spaces between them; no spaces at the ends of lines. */
export function columns (rows: ReadonlyArray<readonly string[]>, paint: (cell: string, column: number, row: number) => string = (cell) => cell): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  return rows.map((row, at) => {
    const last = row.findLastIndex((cell) => cell !== '')
    return row.slice(0, last + 1).map((cell, column) => paint(cell, column, at) + (column === last ? '' : ' '.repeat((widths[column] ?? 0) - cell.length))).join('  ')
  })
}
