/** Rows below a line of headings. Callers pass untrusted text through `printable()` first. */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [headings, ...rows]
  const widths = headings.map((_, i) => Math.max(...all.map(row => (row[i] ?? '').length)))
  return all.map(row =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** With at most three digits. */
export function showSize(bytes: number): string {
  let unit = 0
  let size = bytes
  for (; size >= 1000 && unit < UNITS.length - 1; unit++) size /= 1024
  return `${unit === 0 || size >= 100 ? Math.round(size) : +size.toFixed(1)} ${UNITS[unit]}`
}

/** The time since then in its largest unit. */
export function showAge(since: string, now: number): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(since)) / 1000))
  if (seconds < 120) return `${seconds}s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 120) return `${minutes}m`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours}h` : `${Math.floor(hours / 24)}d`
}
