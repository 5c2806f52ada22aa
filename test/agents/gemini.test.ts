import { join } from 'node:path'
import { selfSigned } from '../gateway/self-signed.ts'
import { GEMINI } from './mock-gemini.ts'
import { claimPreset, KEY } from './preset-claim.ts'

/** It accepts plain HTTP only from its own loopback. */
const { key, cert } = selfSigned('host.pen.internal')

claimPreset({
  agent: 'gemini',
  protocol: GEMINI,
  listen: () => ({ tls: { key, cert } }),
  shell: command => ({ name: 'run_shell_command', input: { command, description: 'a test' } }),
  write: (path, content) => ({ name: 'write_file', input: { file_path: path, content } }),
  words: ['--yolo', '--skip-trust', '--prompt', 'do it'],
  prepare: project => {
    // Outside the project: pen refuses authorities that the sandbox could write.
    project.sandbox.box.file('../ca.pem', cert)
    // With an address in the variable it uses the API key only when its settings say so.
    project.remember('settings.json', '{"security":{"auth":{"selectedType":"gemini-api-key"}}}')
  },
  variables: ({ address, sandbox }) => ({
    GEMINI_API_KEY: KEY,
    GOOGLE_GEMINI_BASE_URL: address,
    // pen checks the server. The agent trusts pen.
    NODE_EXTRA_CA_CERTS: join(sandbox.box.home, 'ca.pem'),
  }),
  says: 'SANDBOX=pen',
})
