/** The doctor names what makes every container slow. */
import { expect } from 'bun:test'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import { Workshop } from '../images/workshop.ts'

interface Report {
  readonly findings: readonly { readonly id: string; readonly status: string; readonly fix: string | null }[]
}

everyEngine(['podman'])(
  'P20 the doctor warns of podman’s storage driver vfs with its fix; overlay is fine',
  async engine => {
    using shop = new Workshop(engine)
    const storage = (of: Workshop) =>
      (JSON.parse(of.pen('doctor', '--json').out) as Report).findings.find(
        ({ id }) => id === 'storage-podman',
      )
    expect(storage(shop)).toBeUndefined()
    const store = shop.box.directory(join(shop.box.root, 'store'), 0o700)
    const file = join(shop.box.root, 'storage.conf')
    shop.box.file(file, `[storage]\ndriver = "vfs"\ngraphroot = "${store}/graph"\nrunroot = "${store}/run"\n`)
    // Without root podman 4.3 reads the driver from this file, and the directory from the user's data.
    const env = { ...engine.env, CONTAINERS_STORAGE_CONF: file, XDG_DATA_HOME: store }
    using slow = new Workshop({ ...engine, env })
    expect(storage(slow)).toMatchObject({
      status: 'weak',
      fix: expect.stringMatching(/driver = "overlay" into .*storage\.conf, then run podman system reset/),
    })
  },
)
