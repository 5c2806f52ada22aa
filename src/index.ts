/**
 * The library: a sandbox as a function call, for programs on Node 20 or newer and on Bun.
 *
 *     import { Sandbox } from 'pen'
 *     await using box = await Sandbox.start({ project: '.', offline: true })
 *     const { exitCode, stdout } = await box.exec(['npm', 'test'], { timeout: 60_000 })
 *
 * See docs/library.md.
 */
export type { Ask, Denial, LimitHit } from './library/denial.ts'
export type {
  CommandEnd,
  CommandLine,
  ExecOptions,
  ExecResult,
  SpawnOptions,
} from './library/exec-options.ts'
export type {
  Entry,
  Listing,
  ReadOptions,
  SandboxFiles,
  SearchOptions,
  SearchResult,
  WriteOptions,
} from './library/files.ts'
export type { ForwardedPort, ForwardOptions } from './library/forwarded-port.ts'
export type {
  AllowOptions,
  GrantOptions,
  PermissionAnswer,
  PermissionRequest,
  RequestOptions,
} from './library/permissions.ts'
export type { OutputPiece } from './library/piece-queue.ts'
export type { BackendName, PolicyDocument } from './library/policy-document.ts'
export type { RunningCommand, RunningCommandEvents } from './library/running-command.ts'
export { Sandbox, type SandboxEvents, type StartOptions } from './library/sandbox.ts'
export { SandboxError, type SandboxErrorCode } from './library/sandbox-error.ts'
