/** Tar archives in which engines return files of an image. They are hostile: the caller limits their size. They are read as text and never unpacked. */

export interface ArchivedFile {
  readonly name: string
  readonly text: string
}

const BLOCK = 512

/** The plain text files of a tar archive, up to the first error. Links, devices and long names are skipped. */
export function textFiles(archive: Buffer): ArchivedFile[] {
  const found: ArchivedFile[] = []
  for (let at = 0; at + BLOCK <= archive.length; ) {
    const field = (from: number, to: number): string =>
      archive.toString('latin1', at + from, at + to).replace(/[\0 ]+$/, '')
    const octal = field(124, 136)
    if (!/^[0-7]{1,11}$/.test(octal)) break
    const begin = at + BLOCK
    const end = begin + Number.parseInt(octal, 8)
    if (end > archive.length) break
    const text = archive.toString('utf8', begin, end)
    if (['0', ''].includes(field(156, 157)) && !/[\0\ufffd]/.test(text))
      found.push({ name: field(0, 100), text })
    at = begin + Math.ceil((end - begin) / BLOCK) * BLOCK
  }
  return found
}
