/** The platforms of a release. Names are those of Node's `process.platform` and `process.arch`, which npm uses too. */
export interface Target {
  readonly platform: 'linux' | 'darwin'
  readonly arch: 'x64' | 'arm64'
  /** The npm package that contains Bun for it. */
  readonly runtime: `@oven/bun-${string}`
}

export const TARGETS: readonly Target[] = [
  { platform: 'linux', arch: 'x64', runtime: '@oven/bun-linux-x64' },
  { platform: 'linux', arch: 'arm64', runtime: '@oven/bun-linux-aarch64' },
  { platform: 'darwin', arch: 'arm64', runtime: '@oven/bun-darwin-aarch64' },
  { platform: 'darwin', arch: 'x64', runtime: '@oven/bun-darwin-x64' },
]

export const nameOf = ({ platform, arch }: Target): string => `${platform}-${arch}`
