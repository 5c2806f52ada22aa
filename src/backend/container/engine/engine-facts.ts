/**
 * What an engine reports about itself and this machine. podman is asked once per version; a daemon is asked every time.
 */
import { statSync } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { cachedFact } from '../../../base/fact-cache.ts'
import { kernelRelease } from '../../../base/kernel/kernel-facts.ts'
import type { CgroupLimit } from '../../../limits/cgroup.ts'
import { type Engine, runEngine } from './engine.ts'

export interface EngineFacts {
  readonly version: string
  readonly rootless: boolean
  /** A root daemon that maps the ids of all containers. */
  readonly mapped: boolean
  /** On this machine, and not in a virtual machine of the engine. */
  readonly here: boolean
  /** The engine's default OCI runtime. */
  readonly runtime: string
  readonly held: readonly CgroupLimit[]
  /** Where the engine stores images and containers. */
  readonly storage: string
  /** The storage driver: `overlay`, `vfs`, … */
  readonly driver: string
}

/** A busy engine, such as one that removes large images, answers late. The doctor uses no cache, so it waits less. */
const ANSWER_MS = { doctor: 10_000, start: 30_000 } as const

export async function engineFacts(engine: Engine, cacheDir: string | undefined): Promise<EngineFacts> {
  const answer = () => ask(engine, cacheDir === undefined ? ANSWER_MS.doctor : ANSWER_MS.start)
  if (engine.name === 'docker' || cacheDir === undefined) return await answer()
  return await cachedFact(`${cacheDir}/${engine.name}.json`, keyOf(engine), answer)
}

/** Increase it when the query changes. */
const FORMAT = 2

/** The cache is invalid after a change of the program, the configuration or the boot. */
function keyOf({ program, env }: Engine): string {
  const { mtimeMs, size } = statSync(program)
  return JSON.stringify([
    FORMAT,
    program,
    mtimeMs,
    size,
    kernelRelease(),
    process.getuid?.(),
    Object.entries(env),
  ])
}

async function ask(engine: Engine, timeoutMs: number): Promise<EngineFacts> {
  const text = await runEngine(engine, ['info', '--format', '{{json .}}'], { timeoutMs })
  try {
    const info = JSON.parse(text) as Info
    return engine.name === 'podman' ? ofPodman(info) : ofDocker(info)
  } catch (cause) {
    throw new PenError('BACKEND', {
      what: `the answer of \`${engine.name} info\` could not be read`,
      hint: `pen needs podman 4.3, Docker 20.10, or newer`,
      cause,
    })
  }
}

interface Info {
  readonly [key: string]: unknown
}

const CONTROLLER: Readonly<Record<CgroupLimit, string>> = { memory: 'memory', pids: 'pids', cpus: 'cpu' }
const LIMITS: readonly CgroupLimit[] = ['memory', 'pids', 'cpus']

export function ofPodman(info: Info): EngineFacts {
  const host = record(info['host'])
  const available = list(host['cgroupControllers'])
  const store = record(info['store'])
  return {
    version: text(record(info['version'])['Version']),
    rootless: record(host['security'])['rootless'] === true,
    mapped: false,
    here: true,
    runtime: text(record(host['ociRuntime'])['name']),
    held: LIMITS.filter(limit => available.includes(CONTROLLER[limit])),
    storage: text(store['graphRoot']),
    driver: text(store['graphDriverName']),
  }
}

const DOCKER_FLAG: Readonly<Record<CgroupLimit, string>> = {
  memory: 'MemoryLimit',
  pids: 'PidsLimit',
  cpus: 'CpuCfsQuota',
}

export function ofDocker(info: Info): EngineFacts {
  const errors = list(info['ServerErrors'])
  if (errors.length > 0 || typeof info['ServerVersion'] !== 'string' || info['ServerVersion'] === '')
    throw new Error(errors.map(String).join('; ') || 'no daemon')
  const has = (name: string): boolean =>
    list(info['SecurityOptions']).some(option => String(option).split(',').includes(`name=${name}`))
  return {
    version: info['ServerVersion'],
    rootless: has('rootless'),
    mapped: has('userns'),
    here: info['KernelVersion'] === kernelRelease(),
    runtime: text(info['DefaultRuntime']),
    held: LIMITS.filter(limit => info[DOCKER_FLAG[limit]] === true),
    storage: text(info['DockerRootDir']),
    driver: text(info['Driver']),
  }
}

function record(value: unknown): Info {
  if (typeof value !== 'object' || value === null) throw new Error('not a record')
  return value as Info
}

const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
