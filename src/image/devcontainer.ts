/**
 * What a `devcontainer.json` means for pen, as a config that the user reads and applies. The file is the project's, and hostile:
 * each value is checked before it is taken, and everything else is listed.
 */
import { dirname, resolve } from '../base/posix-path.ts'
import { quoteWord } from '../base/printable.ts'
import { isObject, type JsonObject, type JsonValue } from '../config/json/json.ts'
import { isWithin } from '../policy/files/path.ts'
import { parsePort } from '../policy/network/port.ts'
import { takeFeatures } from './devcontainer-features.ts'

export interface Proposal {
  /** Keys of pen's config. */
  readonly config: Readonly<Record<string, JsonValue>>
  /** What was taken, as `key: what it became`. */
  readonly taken: readonly string[]
  /** What was not, and why. */
  readonly left: readonly { readonly what: string; readonly why: string }[]
  /** The shell command of `postCreateCommand`, which the user runs once. */
  readonly setup: readonly string[]
}

interface Draft {
  readonly workspace: string
  /** The directory of the file. Its paths are relative to it. */
  readonly folder: string
  readonly image: Record<string, JsonValue>
  readonly args: Record<string, string>
  readonly env: Record<string, JsonValue>
  readonly ports: { guest: number; host: number }[]
  readonly taken: string[]
  readonly left: { what: string; why: string }[]
  readonly setup: string[]
  user?: string
}

type Take = (value: JsonValue, draft: Draft, whole: JsonObject) => void

/** For keys that pen cannot take. All other unknown keys have no reason of their own. */
const WHY: Readonly<Record<string, string>> = {
  customizations: 'pen does not set up editors',
  initializeCommand: 'it would run on your machine',
  mounts: 'read each one, then: pen config edit',
  runArgs: 'pen chooses the arguments of the engine',
  privileged: 'a sandbox has no privileges',
  capAdd: 'a sandbox has no capabilities',
  securityOpt: 'a sandbox has no capabilities',
  dockerComposeFile: 'pen starts one container',
  hostRequirements: 'see limits.cpus and limits.memory: pen config edit',
  workspaceFolder: 'the project has the same path inside',
  workspaceMount: 'the project has the same path inside',
  onCreateCommand: 'run it yourself, with pen exec',
  updateContentCommand: 'run it yourself, with pen exec',
  postStartCommand: 'run it yourself, with pen exec',
  postAttachCommand: 'run it yourself, with pen exec',
  appPort: 'use forwardPorts',
}

const takeImage: Take = (value, draft) => {
  if (typeof value !== 'string' || !/^[a-z0-9][\w./:@-]{0,255}$/i.test(value))
    leave(draft, 'image', 'it is not the name of an image')
  else {
    draft.args['BASE'] = value
    draft.taken.push(`image: the base of pen's own image (image.args.BASE), which needs Debian or Ubuntu`)
  }
}

const takeBuild: Take = (value, draft) => {
  const { dockerfile, context, args, ...others } = isObject(value) ? value : {}
  for (const key of Object.keys(others)) leave(draft, `build.${key}`, 'pen builds without it')
  const file = pathIn(draft, dockerfile)
  const from = pathIn(draft, context ?? '.')
  if (file === undefined || from === undefined)
    return leave(draft, 'build', 'its paths are not in the project')
  draft.image['dockerfile'] = file
  draft.image['context'] = from
  for (const [name, text] of Object.entries(isObject(args) ? args : {}))
    if (typeof text === 'string' && NAME.test(name) && !text.includes('${')) draft.args[name] = text
    else leave(draft, `build.args.${name}`, 'it is not plain text')
  draft.taken.push(`build: image.dockerfile ${file}`)
}

/** Relative to the project, or undefined for a path that leads out. */
function pathIn({ workspace, folder }: Draft, path: JsonValue | undefined): string | undefined {
  if (typeof path !== 'string' || path === '' || /[\0\n$]/.test(path)) return undefined
  const full = resolve(folder, path)
  return isWithin(full, workspace) ? full.slice(workspace.length + 1) || '.' : undefined
}

const NAME = /^[A-Za-z_]\w{0,127}$/
const SECRET = /TOKEN|KEY|SECRET|PASS|CREDENTIAL/i

const takeEnv =
  (key: string): Take =>
  (value, draft) => {
    for (const [name, text] of Object.entries(isObject(value) ? value : {})) {
      const what = `${key}.${name}`
      const [, local] = /^\$\{localEnv:(\w+)\}$/.exec(String(text)) ?? []
      const plain = String(text).replaceAll(/\$\{(?:container|local)WorkspaceFolder\}/g, draft.workspace)
      if (!NAME.test(name) || typeof text !== 'string') leave(draft, what, 'it is not a variable with a text')
      else if (SECRET.test(name)) leave(draft, what, `it may be a secret; see pen secret add ${name}`)
      else if (local !== undefined && local === name) draft.env[name] = { from: 'host' }
      else if (plain.includes('${')) leave(draft, what, 'pen does not replace variables in it')
      else draft.env[name] = plain
      if (name in draft.env) draft.taken.push(`${what}: env.${name}`)
    }
  }

const takePorts: Take = (value, draft) => {
  for (const entry of Array.isArray(value) ? (value as readonly JsonValue[]) : []) {
    const [, text = ''] = /^(?:localhost:|127\.0\.0\.1:)?(\d+)$/.exec(String(entry)) ?? []
    const port = parsePort(text)
    if (!port.ok) leave(draft, `forwardPorts: ${String(entry)}`, 'it is not a port of the sandbox')
    else if (!draft.ports.some(({ guest }) => guest === port.value)) {
      draft.ports.push({ guest: port.value, host: port.value })
      draft.taken.push(`forwardPorts: port ${port.value}`)
    }
  }
}

const takeUser: Take = (value, draft) => {
  if (typeof value === 'string' && /^\d{1,9}:\d{1,9}$/.test(value)) {
    draft.user = value
    draft.taken.push(`remoteUser: user ${value}`)
  } else if (value === 'root' || String(value).startsWith('0'))
    leave(
      draft,
      'remoteUser',
      'commands run with your own user id; vm.root makes them root of a virtual machine',
    )
  else draft.taken.push('remoteUser: the user inside is agent, with your own user id')
}

const takeSetup: Take = (value, draft) => {
  const commands = isObject(value) ? Object.values(value) : [value]
  for (const command of commands)
    if (typeof command === 'string') draft.setup.push(command)
    else if (Array.isArray(command) && command.every(word => typeof word === 'string'))
      draft.setup.push((command as readonly string[]).map(quoteWord).join(' '))
    else leave(draft, 'postCreateCommand', 'it is not a command')
}

const TAKES: Readonly<Record<string, Take>> = {
  name: () => undefined,
  $schema: () => undefined,
  image: takeImage,
  build: takeBuild,
  dockerFile: (value, draft, whole) =>
    takeBuild(
      { dockerfile: value, ...(whole['context'] !== undefined && { context: whole['context'] }) },
      draft,
      whole,
    ),
  context: (_, draft, whole) => {
    if (whole['dockerFile'] === undefined) leave(draft, 'context', 'there is no dockerFile')
  },
  features: (value, draft, whole) =>
    takeFeatures(value, {
      args: draft.args,
      isOwnImage: whole['build'] === undefined && whole['dockerFile'] === undefined,
      take: text => draft.taken.push(text),
      leave: (what, why) => leave(draft, what, why),
    }),
  containerEnv: takeEnv('containerEnv'),
  remoteEnv: takeEnv('remoteEnv'),
  forwardPorts: takePorts,
  remoteUser: takeUser,
  containerUser: takeUser,
  postCreateCommand: takeSetup,
}

function leave(draft: Draft, what: string, why: string): void {
  draft.left.push({ what, why })
}

export function readDevcontainer(document: JsonObject, file: string, workspace: string): Proposal {
  const draft: Draft = {
    workspace,
    folder: dirname(file),
    image: {},
    args: {},
    env: {},
    ports: [],
    taken: [],
    left: [],
    setup: [],
  }
  for (const [key, value] of Object.entries(document)) {
    const take = Object.hasOwn(TAKES, key) ? TAKES[key] : undefined
    if (take !== undefined) take(value, draft, document)
    else leave(draft, key, (Object.hasOwn(WHY, key) ? WHY[key] : undefined) ?? 'pen has nothing like it')
  }
  const { args, env, ports, user, taken, left, setup } = draft
  const image = { ...draft.image, ...(Object.keys(args).length > 0 && { args }) }
  return {
    config: {
      ...(Object.keys(image).length > 0 && { image }),
      ...(Object.keys(env).length > 0 && { env }),
      ...(ports.length > 0 && { ports }),
      ...(user !== undefined && { user }),
    },
    taken,
    left,
    setup,
  }
}
