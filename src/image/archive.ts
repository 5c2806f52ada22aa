/** The archives in which engines hand out files of an image. Hostile: the caller bounds their size; they are read as text, and never unpacked. */

export interface ArchivedFile {
  readonly name: string
  readonly text: string
}

const BLOCK = 512

/** The plain files of a tar archive that are text, up to what is broken in it. Links, devices and long names are left out. */
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
