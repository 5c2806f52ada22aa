/** Where a user's programs look for files to run: known places of the home, those moved by variables, and `PATH`. */
import { lstatSync, readFileSync } from 'node:fs'
import { HOME_PARTS, HOME_TREE, type HomePlace } from '../../policy/files/home-places.ts'
import { isWithin, type PathWorld } from '../../policy/files/path.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface HomeLocation {
  /** Absolute. */
  readonly path: string
  /** As the user writes it. */
  readonly name: string
  readonly place: HomePlace
}

type World = Pick<PathWorld, 'workspace' | 'home'>

export function homeLocations(world: World, env: Environment): HomeLocation[] {
  const { home } = world
  const spots: HomeLocation[] = [{ path: home, name: '~', place: HOME }]
  for (const other of ownersHome(world)) spots.push({ path: other, name: other, place: HOME })
  const isElsewhere = (path: string | undefined, usual: string): path is string =>
    path?.startsWith('/') === true && path !== `${home}${usual}`
  for (const [variable, usual, place] of MOVED) {
    const path = env[variable]
    if (isElsewhere(path, usual)) spots.push({ path, name: `$${variable}`, place })
  }
  addSearchPath(spots, world.workspace, env)
  return spots
}

const HOME: HomePlace = { in: HOME_TREE }
const RUN: HomePlace = { run: true, shallow: true }
const ZSH: HomePlace = {
  in: Object.fromEntries(Object.entries(HOME_TREE).filter(([name]) => name.startsWith('.z'))),
}

/** Variables that move a part of the home, or name a file that a program runs at its start. */
const MOVED: readonly (readonly [string, string, HomePlace])[] = [
  ['XDG_CONFIG_HOME', '/.config', HOME_PARTS.config],
  ['XDG_DATA_HOME', '/.local/share', HOME_PARTS.data],
  ['ZDOTDIR', '', ZSH],
  ['CLAUDE_CONFIG_DIR', '/.claude', HOME_PARTS.claude],
  ['CODEX_HOME', '/.codex', HOME_PARTS.codex],
  ['BASH_ENV', '/.bashrc', RUN],
  ['ENV', '/.shrc', RUN],
  ['INPUTRC', '/.inputrc', RUN],
  ['PYTHONSTARTUP', '/.pythonrc', RUN],
]

/** Directories of the user's PATH. Those that package tools fill inside the project stay writable. */
function addSearchPath(spots: HomeLocation[], workspace: string, env: Environment): void {
  const { PATH = '', VIRTUAL_ENV, CONDA_PREFIX, DIRENV_DIR } = env
  const isBelow = (dir: string, top: string | undefined): boolean =>
    top?.startsWith('/') === true && isWithin(dir, top)
  const isFilled = (dir: string): boolean =>
    isWithin(dir, workspace) &&
    (dir.includes('/node_modules/') ||
      isBelow(dir, VIRTUAL_ENV) ||
      isBelow(dir, CONDA_PREFIX) ||
      isBelow(workspace, DIRENV_DIR?.slice(1)))
  for (const dir of PATH.split(':'))
    if (dir.startsWith('/') && !OF_SYSTEM.some(top => isWithin(dir, top)) && !isFilled(dir))
      spots.push({ path: dir, name: `${dir} in PATH`, place: RUN })
}

/** Only root can make links there. */
const OF_SYSTEM = ['/usr', '/bin', '/sbin', '/nix', '/snap']

/** When root works in a user's project, that user's home counts too. */
function ownersHome({ workspace, home }: World): string[] {
  if (process.getuid?.() !== 0) return []
  const uid = lstatSync(workspace, { throwIfNoEntry: false })?.uid ?? 0
  if (uid === 0) return []
  const user = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
    .find(fields => fields[2] === String(uid))
  const theirs = user?.[5]?.replace(/\/+$/, '') ?? ''
  return theirs.startsWith('/') && theirs !== home ? [theirs] : []
}
