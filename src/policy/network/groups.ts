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
  /** Only these requests to the sources that it follows, each as methods and a path. */
  readonly requests?: readonly string[]
}

/** What installing needs. Publishing is another method. */
const READ = ['GET,HEAD /**']

const ALL = {
  npm: { version: 1, reason: 'JavaScript packages, from the registries in npmrc', follows: 'npm' },
  'npm:install': {
    version: 1,
    reason: 'install JavaScript packages and audit them; no publish',
    follows: 'npm',
    requests: [...READ, 'POST /-/npm/v1/security/**', 'POST /**/-/npm/v1/security/**'],
  },
  'pypi:install': {
    version: 1,
    reason: 'install Python packages; no upload',
    follows: 'pip',
    requests: READ,
  },
  'crates:install': {
    version: 2,
    reason: 'download Rust crates; no publish',
    follows: 'cargo',
    // An index may be a git repository.
    requests: [...READ, 'POST /**/git-upload-pack'],
  },
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
  'github:read': {
    version: 1,
    reason: 'clone, fetch and read the API of GitHub; no push, no GraphQL',
    hosts: [
      { rule: 'GET,HEAD github.com:443/**', reason: 'release pages, and the begin of a fetch' },
      { rule: 'POST github.com:443/*/*/git-upload-pack', reason: 'clone and fetch over HTTPS' },
      { rule: 'POST github.com:443/*/*/info/lfs/objects/batch', reason: 'where large files are' },
      { rule: 'GET,HEAD api.github.com:443/**', reason: 'the API, read-only' },
      { rule: 'codeload.github.com:443', reason: 'source archives' },
      { rule: 'raw.githubusercontent.com:443', reason: 'single files' },
      { rule: 'objects.githubusercontent.com:443', reason: 'files of large-file storage' },
      { rule: 'release-assets.githubusercontent.com:443', reason: 'files of a release' },
    ],
  },
  'github:write': {
    version: 1,
    reason: 'what github:read allows, push over HTTPS, and every request of the API',
    hosts: [
      { rule: 'GET,HEAD github.com:443/**', reason: 'release pages, and the begin of a fetch or push' },
      { rule: 'POST github.com:443/*/*/git-upload-pack', reason: 'clone and fetch over HTTPS' },
      { rule: 'POST github.com:443/*/*/git-receive-pack', reason: 'push over HTTPS' },
      { rule: 'POST github.com:443/*/*/info/lfs/**', reason: 'large files, and locks on them' },
      { rule: 'api.github.com:443', reason: 'the API, used by gh' },
      { rule: 'uploads.github.com:443', reason: 'files for a release' },
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
  'vscode-server': {
    version: 1,
    reason: 'the servers that VS Code and Cursor download into a sandbox over SSH; no extensions',
    hosts: [
      { rule: 'update.code.visualstudio.com:443', reason: 'which server VS Code needs' },
      { rule: 'vscode.download.prss.microsoft.com:443', reason: 'the server of VS Code' },
      { rule: 'downloads.cursor.com:443', reason: 'the server of Cursor' },
      { rule: 'cursor.blob.core.windows.net:443', reason: 'the server of earlier versions of Cursor' },
    ],
  },
  jetbrains: {
    version: 1,
    reason: 'the IDEs that JetBrains Gateway downloads into a sandbox over SSH; no plugins',
    hosts: [
      { rule: 'download.jetbrains.com:443', reason: 'the IDE' },
      { rule: 'download-cdn.jetbrains.com:443', reason: 'where its files are' },
    ],
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
