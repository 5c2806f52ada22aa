/** Images take half a gigabyte each: `pen gc` takes away those that no sandbox uses any more. */
import { expect } from 'bun:test'
import { everyEngine } from '../engines/every-engine.ts'
import { BASE_NAME } from '../engines/test-engine.ts'
import { Workshop } from './workshop.ts'

everyEngine()(
  'P4 pen gc removes a project’s older images, and after pen rm its last; those in use stay',
  async engine => {
    using shop = new Workshop(engine)
    using other = new Workshop(engine)
    const built = (by: Workshop, text: string): string => {
      by.dockerfile(`FROM ${BASE_NAME}\nLABEL text=${text}\n`)
      const said = by.agreeAndBuild('--quiet')
      const name = /^built: (\S+)$/m.exec(said.out)?.[1]
      if (name === undefined) throw new Error(`nothing was built: ${said.code} ${said.out}${said.err}`)
      return name
    }
    const isThere = (name: string): boolean => {
      const full = engine.backend === 'podman' ? `localhost/${name}` : name
      return shop.ask('image', 'inspect', full).code === 0
    }
    const ofProject = (said: string): string[] =>
      (JSON.parse(said) as { leftovers: { kind: string; name: string }[] }).leftovers.flatMap(
        ({ kind, name }) => (kind === 'image' && !name.startsWith('pen/default:') ? [name] : []),
      )
    const first = built(shop, 'first')
    const second = built(shop, 'second')
    const others = built(other, 'third')
    expect(ofProject(shop.pen('gc', '--dry-run', '--json').out)).toEqual([first])
    expect([first, second, others].map(isThere)).toEqual([true, true, true])
    expect(ofProject(shop.pen('gc', '--json').out)).toEqual([first])
    expect([first, second, others].map(isThere)).toEqual([false, true, true])
    expect(shop.pen('rm', '--yes').code).toBe(0)
    expect(ofProject(shop.pen('gc', '--json').out)).toEqual([second])
    expect([second, others].map(isThere)).toEqual([false, true])
  },
)
