import { PenError } from '../../base/error.ts'
import { join } from '../../base/posix-path.ts'
import type { GroupContext } from '../groups.ts'
import { readJson } from '../json/json.ts'
import { readIni } from './ini-file.ts'
import type { Mirror } from './mirror.ts'
import { listSystemDirectory, readSystemFile } from './system-file.ts'

/** The prefix of a short image name, which engines use as the name of its registry. */
const SHORT = 'docker.io'

/** Mirrors of Docker Hub in the engines' settings: podman's registries.conf, Docker's daemon.json. */
export function imageMirrors(context: GroupContext): Mirror[] {
  const etc = context.etc ?? '/etc'
  const read = (file: string): string => readSystemFile(file, context.writable) ?? ''
  const parts = join(etc, 'containers/registries.conf.d')
  const mirrors = [
    join(context.home, '.config/containers/registries.conf'),
    join(etc, 'containers/registries.conf'),
    ...listSystemDirectory(parts)
      .filter(name => name.endsWith('.conf'))
      .map(name => join(parts, name)),
  ].flatMap(file => registryMirrors(read(file), file))
  const daemons = [join(etc, 'docker/daemon.json'), join(context.home, '.config/docker/daemon.json')]
  mirrors.push(...daemons.flatMap(file => daemonMirrors(read(file), file)))
  if (mirrors.length > 0) return mirrors
  throw new PenError('GROUP', {
    what: `the group "docker-hub" follows podman and Docker, and neither is set to a mirror of ${SHORT}`,
    at: 'network.groups',
    hint: `name one in registries.conf ([[registry]] prefix = "${SHORT}" location = HOST), or allow registry and layer hosts with pen allow`,
  })
}

/** `[[registry]]` blocks, each with the `[[registry.mirror]]` blocks after it. */
function registryMirrors(text: string, file: string): Mirror[] {
  const blocks = text.split(/^(?=\s*\[\[registry\]\])/m)
  let line = 0
  return blocks.flatMap(block => {
    const before = line
    line += block.split('\n').length - 1
    const values = readIni(block, file).filter(({ section }) => section.startsWith('[registry'))
    const own = values.filter(({ section }) => section === '[registry')
    const says = (key: string) => own.find(value => value.key === key)?.value
    if ((says('prefix') ?? says('location')) !== SHORT) return []
    return values
      .filter(({ key, value }) => key === 'location' && value !== SHORT)
      .map(({ value, at }) => ({ url: `https://${value}`, at: { ...at, line: at.line + before } }))
  })
}

function daemonMirrors(text: string, file: string): Mirror[] {
  if (text.trim() === '') return []
  const document = readJson(Buffer.from(text), file)
  const list = (document.value as { 'registry-mirrors'?: unknown } | null)?.['registry-mirrors']
  if (!Array.isArray(list)) return []
  return list.flatMap((url: unknown, i) =>
    typeof url === 'string' ? [{ url, at: document.placeOf(['registry-mirrors', i]) }] : [],
  )
}
