/**
 * Named sets of hosts. Every change to a set raises its version, so that pen can show what is new.
 * Sets for package managers name no registry. They follow the package manager's own configuration (`config/groups.ts`), so
 * a private mirror works without setup.
 */

/** The package manager whose configuration lists the sources. */
export type PackageManager = 'npm' | 'pip' | 'cargo' | 'go' | 'apt' | 'containers'

/** An entry of `network.http`, and its purpose. */
export interface GroupHost {
  readonly rule: string
  readonly reason: string
}

export interface Group {
  readonly version: number
  readonly reason: string
  readonly hosts?: readonly GroupHost[]
  readonly follows?: PackageManager
}

const ALL = {
  npm: { version: 1, reason: 'JavaScript packages, from the registries in npmrc', follows: 'npm' },
  pypi: { version: 1, reason: 'Python packages, from the indexes in pip.conf and uv.toml', follows: 'pip' },
  crates: { version: 1, reason: 'Rust crates, from the registries in cargo’s config.toml', follows: 'cargo' },
  go: { version: 1, reason: 'Go modules, from GOPROXY and GOSUMDB', follows: 'go' },
  debian: { version: 1, reason: 'Debian packages, from the sources of apt', follows: 'apt' },
  ubuntu: { version: 1, reason: 'Ubuntu packages, from the sources of apt', follows: 'apt' },
  github: {
    version: 1,
    reason: 'clone, fetch, push and the API of GitHub; a push can also publish',
    hosts: [
      { rule: 'github.com:443', reason: 'git over HTTPS and release pages' },
      { rule: 'github.com:22', reason: 'git over SSH' },
      { rule: 'api.github.com:443', reason: 'the API, used by gh' },
      { rule: 'codeload.github.com:443', reason: 'source archives' },
      { rule: 'raw.githubusercontent.com:443', reason: 'single files' },
      { rule: 'objects.githubusercontent.com:443', reason: 'files of large-file storage' },
      { rule: 'release-assets.githubusercontent.com:443', reason: 'files of a release' },
    ],
  },
  gitlab: {
    version: 1,
    reason: 'clone, fetch, push and the API of gitlab.com; a push can also publish',
    hosts: [
      { rule: 'gitlab.com:443', reason: 'git over HTTPS, archives and the API' },
      { rule: 'gitlab.com:22', reason: 'git over SSH' },
    ],
  },
  'docker-hub': {
    version: 2,
    reason: 'pull images of Docker Hub, from the mirrors that the engines are set to',
    follows: 'containers',
    hosts: [{ rule: 'auth.docker.io:443', reason: 'the token that a pull needs' }],
  },
  anthropic: {
    version: 1,
    reason: 'models of Anthropic',
    hosts: [
      { rule: 'api.anthropic.com:443', reason: 'the API' },
      { rule: 'console.anthropic.com:443', reason: 'sign-in and renewal of its token' },
      { rule: 'platform.claude.com:443', reason: 'sign-in and renewal of its token' },
    ],
  },
  openai: {
    version: 1,
    reason: 'models of OpenAI',
    hosts: [
      { rule: 'api.openai.com:443', reason: 'the API' },
      { rule: 'auth.openai.com:443', reason: 'sign-in and renewal of its token' },
      { rule: 'chatgpt.com:443', reason: 'the API for sign-ins with a plan' },
    ],
  },
  'google-ai': {
    version: 1,
    reason: 'Gemini models',
    hosts: [
      { rule: 'generativelanguage.googleapis.com:443', reason: 'the API' },
      { rule: 'cloudcode-pa.googleapis.com:443', reason: 'the API for sign-ins with an account' },
      { rule: 'oauth2.googleapis.com:443', reason: 'renewal of the sign-in token' },
    ],
  },
} satisfies Record<string, Group>

export type GroupName = keyof typeof ALL

export const GROUPS: Readonly<Record<GroupName, Group>> = ALL

export function isGroupName(name: string): name is GroupName {
  return Object.hasOwn(GROUPS, name)
}
