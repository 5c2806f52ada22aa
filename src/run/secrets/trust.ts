/**
 * Makes programs in a sandbox trust the project's authority. The system's bundle is covered by a copy that also has the
 * authority. Runtimes with a list of their own get variables. No setting of the user is needed.
 */
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { AUTHORITY_BUNDLES } from '../../base/authority-bundle.ts'
import { dirname } from '../../base/posix-path.ts'
import type { Authority } from '../../gateway/tls/authority.ts'
import { AUTHORITIES_PATH } from '../../plan/environment.ts'
import type { Plan, Step, Variable } from '../../plan/plan.ts'
import { type GuestPath, type HostPath, isWithin } from '../../policy/files/path.ts'
import { SANDBOX_HOME } from '../../policy/profile.ts'
import { storeOf, withCertificate } from './java-truststore.ts'
import { nssDatabase } from './nss-database.ts'

/** Truststores of Java: Debian, Fedora. */
const JAVA_STORES = ['/etc/ssl/certs/java/cacerts', '/etc/pki/java/cacerts']
/** Where Eclipse Temurin has it, and the images that are built on it. */
const IMAGE_JAVA_STORES = [...JAVA_STORES, '/opt/java/openjdk/lib/security/cacerts']

/** Chromium's database of authorities. */
const NSS_PATH = `${SANDBOX_HOME}/.pki/nssdb`

const AUTHORITY_PATH = `${dirname(AUTHORITIES_PATH)}/authority.pem`
/** Where images keep the bundle. An engine makes the file where an image has none. */
const IMAGE_BUNDLES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt']

/** These add to the runtime's own list: Node.js and Bun, Deno. */
const ADDING = ['NODE_EXTRA_CA_CERTS', 'DENO_CERT']
/** These replace a list, so they name the whole bundle: OpenSSL and Go, curl, requests, pip, git, cargo, AWS, gRPC in C. */
const REPLACING = [
  'SSL_CERT_FILE',
  'CURL_CA_BUNDLE',
  'REQUESTS_CA_BUNDLE',
  'PIP_CERT',
  'GIT_SSL_CAINFO',
  'CARGO_HTTP_CAINFO',
  'AWS_CA_BUNDLE',
  'GRPC_DEFAULT_SSL_ROOTS_FILE_PATH',
]

/** Of the files that pen makes: raised with every change. */
const FORMAT = 1

interface TrustRequest {
  readonly authority: Authority
  readonly stateDir: string
  /** Where volumes are. */
  readonly volumes: HostPath
  /** The host's bundle if an authority was added to it. Node.js needs that one too. */
  readonly hostBundle: string | undefined
  readonly isImage: boolean
  /** Variables that the user set. They stay. */
  readonly own: ReadonlySet<string>
}

export function withTrust(plan: Plan, request: TrustRequest): Plan {
  const { authority, stateDir, volumes, hostBundle, isImage, own } = request
  const directory = `${stateDir}/trust`
  mkdirSync(directory, { recursive: true, mode: 0o700 })
  /** A file that is made from others, and again when one of them or the authority has changed. */
  const made = (name: string, sources: readonly string[], make: () => string | Buffer): HostPath => {
    const path = `${directory}/${name}`
    const from = JSON.stringify([FORMAT, authority.certificate, ...sources.map(identityOf)])
    if (bytesOf(`${path}.from`)?.toString() === from && existsSync(path)) return path as HostPath
    writeFileAtomically(path, Buffer.from(make() as string, 'latin1'), { mode: 0o644 })
    writeFileAtomically(`${path}.from`, from)
    return path as HostPath
  }
  const bundles = AUTHORITY_BUNDLES.flatMap(path => realPathOf(path) ?? [])
  const [system] = bundles
  const all = (): string =>
    `${system === undefined ? '' : `${readFileSync(system, 'latin1').trimEnd()}\n`}${authority.certificate}`
  const bundle = made('bundle.pem', bundles, all)
  const single = made('authority.pem', [], () => authority.certificate)
  const show = (from: HostPath, at: string): Step => ({
    op: 'bind',
    from,
    at: at as GuestPath,
    mode: 'ro',
    why: isImage ? 'certificate authorities' : 'system',
  })
  // A store in another format gives way to one of the system's bundle.
  const java = (real: string) => (): Buffer =>
    withCertificate(bytesOf(real) ?? Buffer.alloc(0), 'pen', authority.certificate) ?? storeOf(all())
  const javaSteps = isImage
    ? IMAGE_JAVA_STORES.map(path =>
        show(
          made('image-java', bundles, () => storeOf(all())),
          path,
        ),
      )
    : JAVA_STORES.flatMap(path => realPathOf(path) ?? []).map(real =>
        show(made('java', [real, ...bundles], java(real)), real),
      )
  const nss = made('nss', [], () => nssDatabase(authority.certificate))
  const steps = [
    ...javaSteps,
    ...nssSteps(plan, nss, volumes),
    show(single, AUTHORITY_PATH),
    show(bundle, AUTHORITIES_PATH),
    ...[...new Set(isImage ? IMAGE_BUNDLES : bundles)].map(path => show(bundle, path)),
    ...(isImage ? [] : [show(single, `/etc/ssl/certs/${subjectHash(authority)}.0`)]),
  ]
  const adds = hostBundle === undefined ? AUTHORITY_PATH : AUTHORITIES_PATH
  const env = [
    ...ADDING.map(name => variable(name, adds)),
    ...REPLACING.map(name => variable(name, AUTHORITIES_PATH)),
  ].filter(({ name }) => !own.has(name))
  const places = new Set(steps.map(({ at }) => at))
  const isSeal = (step: Step): boolean => step.op === 'seal'
  return {
    ...plan,
    steps: [
      ...plan.steps.filter(step => !isSeal(step) && !places.has(step.at)),
      ...steps,
      ...plan.steps.filter(isSeal),
    ],
    env: [...plan.env.filter(({ name }) => !env.some(other => other.name === name)), ...env],
  }
}

/**
 * NSS writes beside its database, so it gets a volume, and a new copy at each start. What is in the volume is hostile: a
 * file of the same name is removed, never followed.
 */
function nssSteps({ steps }: Plan, made: HostPath, volumes: HostPath): Step[] {
  // Something of the user's own is there.
  const isTaken = steps.some(
    ({ op, at }) => op === 'bind' && (isWithin(NSS_PATH, at) || isWithin(at, dirname(NSS_PATH))),
  )
  if (isTaken) return []
  // No name of a volume of the user has capitals.
  const from = `${volumes}/NSS` as HostPath
  mkdirSync(from, { recursive: true, mode: 0o700 })
  const file = `${from}/cert9.db`
  try {
    rmSync(file, { force: true })
    copyFileSync(made, file, constants.COPYFILE_EXCL)
  } catch {
    // A program inside made a directory of that name, or was faster. Its own Chromium refuses opened hosts then.
  }
  return [{ op: 'bind', from, at: NSS_PATH as GuestPath, mode: 'rw', why: 'certificate authorities of NSS' }]
}

const variable = (name: string, value: string): Variable => ({ name, value, secret: false })

/** Changes with the file. */
function identityOf(path: string): readonly string[] {
  const { ino, size, mtimeNs } = statSync(path, { bigint: true })
  return [path, ...[ino, size, mtimeNs].map(String)]
}

function realPathOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}

function bytesOf(path: string): Buffer | undefined {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

/** The name under which OpenSSL looks for an authority in a directory: a hash of its subject in lower case. */
function subjectHash({ name }: Authority): string {
  const text = Buffer.from(name.toLowerCase())
  const common = Buffer.from([0x06, 0x03, 0x55, 0x04, 0x03, 0x0c, text.length, ...text])
  const subject = Buffer.from([0x31, common.length + 2, 0x30, common.length, ...common])
  const digest = new Bun.CryptoHasher('sha1').update(subject).digest()
  return digest.readUInt32LE(0).toString(16).padStart(8, '0')
}
