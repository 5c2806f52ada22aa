import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { systemConfig } from './system-config.ts'

test('files of /etc that programs read are shown, of any version; files of services and people are not', () => {
  const etc = mkdtempSync(join(tmpdir(), 'pen-etc-'))
  const shown = [
    'ImageMagick-6',
    'R',
    'chromium.d',
    'java-21-openjdk',
    'libreoffice',
    'php/8.2/cli',
    'php/8.2/mods-available',
    'python3.14',
    'ssl/certs',
    'texmf',
  ]
  const hidden = ['ssh', 'mysql', 'php/8.2/fpm', 'sudoers.d', 'ssl/private', 'NetworkManager', 'cron.d']
  try {
    for (const path of [...shown, ...hidden]) mkdirSync(join(etc, path), { recursive: true })
    const found = systemConfig(etc).map(path => path.slice(etc.length + 1))
    for (const path of shown) expect(found).toContain(path)
    for (const path of hidden) expect(found.some(one => path.startsWith(one))).toBe(false)
  } finally {
    rmSync(etc, { recursive: true, force: true })
  }
})
