/** Features of a `devcontainer.json` that are plain packages of Debian. Others run scripts of their authors while an image is built. */
import dockerfile from '../../image/Dockerfile' with { type: 'text' }
import { isObject, type JsonValue } from '../config/json/json.ts'

/** By the last part of the feature's name. The versions are Debian's. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  git: ['git'],
  'git-lfs': ['git-lfs'],
  'github-cli': ['gh'],
  python: ['python3', 'python3-pip', 'python3-venv'],
  ruby: ['ruby-full'],
  go: ['golang-go'],
  rust: ['rustc', 'cargo'],
  java: ['default-jdk-headless'],
  php: ['php-cli'],
}
/** Features whose option `packages` lists packages. */
const LISTS: readonly string[] = ['apt-packages', 'apt-get-packages', 'apt']
/** No version, or any version. */
const ANY_VERSION: readonly string[] = ['', 'latest', 'os-provided', 'lts', 'system']
const PACKAGE = /^[a-z0-9][a-z0-9.+-]{0,63}$/

interface Taking {
  /** Build arguments of pen's own image. */
  readonly args: Record<string, string>
  /** Only pen's own Dockerfile installs packages. */
  readonly isOwnImage: boolean
  take(text: string): void
  leave(what: string, why: string): void
}

export function takeFeatures(value: JsonValue, { args, isOwnImage, take, leave }: Taking): void {
  const added: string[] = []
  for (const [id, options] of Object.entries(isObject(value) ? value : {})) {
    const what = `features: ${id}`
    const name = (id.split('/').at(-1) ?? '').replace(/[:@].*$/s, '')
    const version = isObject(options) ? String(options['version'] ?? '') : String(options)
    if (!isOwnImage) leave(what, 'install it in the Dockerfile')
    else if (name === 'node' && /^\d+\.\d+\.\d+$/.test(version)) {
      args['NODE'] = version
      take(`${what}: image.args.NODE ${version}`)
    } else if (name === 'node')
      leave(what, 'pen installs one full version: pen config set image.args.NODE 22.11.0')
    else {
      const packages = packagesOf(name, options)
      const isAny = LISTS.includes(name) || ANY_VERSION.includes(version)
      if (packages === undefined) leave(what, 'it is not a list of packages; install it in .pen/Dockerfile')
      else if (!isAny)
        leave(what, `Debian has its own version, not ${version}; install it in .pen/Dockerfile`)
      else {
        added.push(...packages)
        take(`${what}: packages ${packages.join(', ')}`)
      }
    }
  }
  if (added.length === 0) return
  const [, own = ''] = /^ARG PACKAGES="([^"]*)"$/m.exec(dockerfile) ?? []
  args['PACKAGES'] = [...new Set([...own.split(' '), ...added])].join(' ')
}

function packagesOf(name: string, options: JsonValue): readonly string[] | undefined {
  if (!LISTS.includes(name)) return Object.hasOwn(PACKAGES, name) ? PACKAGES[name] : undefined
  const list = isObject(options) ? options['packages'] : undefined
  const names = Array.isArray(list) ? list.map(String) : String(list ?? '').split(/[\s,]+/)
  const given = names.filter(text => text !== '')
  return given.length > 0 && given.every(text => PACKAGE.test(text)) ? given : undefined
}
