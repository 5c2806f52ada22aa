import { describe, expect, test } from 'bun:test'
import { PenError, showPlace } from '../base/error.ts'
import { readJson } from '../config/json/json.ts'
import { validateDocument } from './validate.ts'

const check = (text: string) =>
  validateDocument(readJson(new TextEncoder().encode(text), 'config.json'), 'live config')

/** The error in one line: what, where, fix. */
function refusal(text: string): string {
  try {
    check(text)
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    expect(error.exitCode).toBe(2)
    return [error.message, showPlace(error.at ?? ''), error.hint].join(' | ')
  }
  throw new Error(`${text} was taken`)
}

describe('a document', () => {
  test('that says nothing, and one that says everything, is taken', () => {
    expect(check('{}')).toEqual({})
    expect(
      check(`{ "$schema": "./config.schema.json", "version": 1, "profile": "coding", "isolation": "auto",
        "files": { "read": [], "write": ["./output"], "deny": [".env*"], "protect": [".git/hooks"] },
        "network": { "http": [], "tcp": [], "groups": ["npm"], "deny": [], "ask": "never", "mode": "gateway",
          "upstreamProxy": null, "idle": "1h", "offline": false },
        "exec": { "timeout": "120s", "ceiling": "600s", "maxOutput": "10MiB" },
        "limits": { "cpus": 2, "memory": "4GiB", "pids": 512, "wall": "8h", "disk": "10GiB", "output": "1GiB", "files": 4096 },
        "env": { "A": "b", "C": { "from": "host" } },
        "mounts": [{ "host": "~/.gitconfig", "at": "/home/agent/.gitconfig", "mode": "ro" }, { "volume": "v", "at": "/v" }],
        "image": { "dockerfile": "./.pen/Dockerfile", "context": ".", "args": {}, "pull": "never" },
        "tools": { "shell": true, "allow": ["git"], "exec": "any" },
        "user": "host", "runtime": "runc", "ssh": { "agent": { "keys": [] } }, "acceptGaps": [], "ports": [{ "guest": 3000, "host": 3000 }] }`),
    ).toMatchObject({ version: 1 })
  })

  test.each([
    ['null', 'the document must be an object, not null | config.json:1:1'],
    ['[]', 'the document must be an object, not a list | config.json:1:1'],
    ['"x"', 'the document must be an object, not "x" | config.json:1:1'],
    ['{"files":[]}', 'files must be an object, not a list | config.json:1:10'],
    ['{"env":[]}', 'env must be an object, not a list | config.json:1:8'],
    ['{"ssh":[]}', 'ssh must be an object, not a list | config.json:1:8'],
    ['{"image":{"args":[]}}', 'image.args must be an object, not a list | config.json:1:18'],
    ['{"mounts":[[]]}', 'mounts[0] must be an object, not a list | config.json:1:12'],
    ['{"files":null}', 'files must be an object, not null | config.json:1:10'],
    ['{"files":{"read":{}}}', 'files.read must be a list, not an object | config.json:1:18'],
    ['{"files":{"read":"./src"}}', 'files.read must be a list, not "./src" | config.json:1:18'],
    ['{"files":{"read":[1]}}', 'files.read[0] must be a text in quotes, not 1 | config.json:1:19'],
    ['{"network":{"http":null}}', 'network.http must be a list, not null | config.json:1:20'],
    ['{"network":{"http":""}}', 'network.http must be a list, not "" | config.json:1:20'],
    [
      '{"network":{"offline":"false"}}',
      'network.offline must be true or false, not "false" | config.json:1:23',
    ],
    ['{"network":{"offline":0}}', 'network.offline must be true or false, not 0 | config.json:1:23'],
    ['{"limits":{"cpus":"2"}}', 'limits.cpus must be a number, not "2" | config.json:1:19'],
    ['{"limits":{"memory":4096}}', 'limits.memory must be a text in quotes, not 4096 | config.json:1:21'],
    ['{"version":2}', 'version must be 1, not 2 | config.json:1:12'],
    ['{"ports":[{"guest":1}]}', 'ports[0].host is missing | config.json:1:11 | add "host"'],
    ['{"mounts":[{"host":"a"}]}', 'mounts[0].at is missing | config.json:1:12'],
    ['{"env":{"A":null}}', 'env.A must be a text in quotes or an object, not null | config.json:1:13'],
    ['{"env":{"A":{"from":"hots"}}}', 'env.A.from must be "host", not a text in quotes | config.json:1:21'],
  ])('%s is refused where it is wrong', (text, message) => {
    expect(refusal(text)).toStartWith(message)
  })

  test('a wrong value gets the place of the value, on its own line', () => {
    expect(refusal('{\n  "network": {\n    "mode":\n      "gatway"\n  }\n}')).toBe(
      'network.mode must be "none" or "gateway" or "bridge", not "gatway" | config.json:4:7 | did you mean "gateway"?',
    )
  })
})

describe('an unknown key', () => {
  test.each([
    ['{"fiels":{}}', 'unknown key "fiels" | config.json:1:2 | did you mean "files"?'],
    ['{"files":{"Read":[]}}', 'unknown key "Read" in files | config.json:1:11 | did you mean "read"?'],
    ['{"network":{"allow":[]}}', 'unknown key "allow" in network | config.json:1:13 | delete it'],
    [
      '{"mounts":[{"volume":"v","at":"/v","mod":1}]}',
      'unknown key "mod" in mounts[0] | config.json:1:36 | did you mean "mode"?',
    ],
    ['{"env":{"A":{"from":"host","x":1}}}', 'unknown key "x" in env.A | config.json:1:28'],
    ['{"toString":1}', 'unknown key "toString" | config.json:1:2'],
    ['{"hasOwnProperty":1}', 'unknown key "hasOwnProperty" | config.json:1:2'],
    ['{"profile ":"dev"}', 'unknown key "profile " | config.json:1:2 | did you mean "profile"?'],
  ])('%s is refused, with the word that was meant', (text, message) => {
    expect(refusal(text)).toStartWith(message)
  })

  test('is shown escaped: a key may be an attack on the terminal', () => {
    expect(refusal('{"a\\u001b[2J":1}')).not.toContain('\u001b')
  })

  test.each(['__proto__', 'constructor', 'prototype'])('%s never reaches the validator', key => {
    expect(refusal(`{"${key}":{"allowAll":true}}`)).toContain(key)
    expect(({} as Record<string, unknown>)['allowAll']).toBeUndefined()
  })
})

describe('a secret in the wrong place', () => {
  test.each([
    '{"env":{"TOKEN":5331773}}',
    '{"env":{"TOKEN":{"from":"canary-5331773"}}}',
    '{"env":{"TOKEN":["canary-5331773"]}}',
    '{"image":{"args":{"TOKEN":5331773}}}',
    '{"network":{"upstreamProxy":["http://u:5331773@proxy.example.com"]}}',
    '{"network":{"upstreamProxy":5331773}}',
  ])('%s is not repeated in the error', text => {
    expect(refusal(text)).not.toContain('5331773')
  })
})
