import { describe, expect, test } from 'bun:test'
import { globMatches, parseGlob } from './glob.ts'
import { DENIED_GLOBS, PROTECTED_PLACES, RUN_LATER } from './protected-places.ts'

const paths = PROTECTED_PLACES.map(place => place.path)
const covers = (path: string): boolean => paths.some(p => path === p || path.startsWith(`${p}/`))

describe('protected by default', () => {
  test.each([
    '.git/hooks/pre-commit',
    '.git/config',
    '.git/config.worktree',
    '.git/commondir',
    '.husky/pre-commit',
    '.vscode/tasks.json',
    '.vscode/settings.json',
    '.idea/workspace.xml',
    '.devcontainer/devcontainer.json',
    '.envrc',
    '.direnv/flake-profile.rc',
    'lefthook-local.toml',
    '.mcp.json',
    '.claude/settings.json',
    '.claude/hooks/stop.sh',
    '.cursor/mcp.json',
    '.npmrc',
    '.yarnrc.yml',
    '.pnpmfile.cjs',
    '.cargo/config.toml',
    '.pre-commit-config.yaml',
    'mise.toml',
    '.pen/config.json',
    'agent-permissions.json',
    '.hg/sharedpath',
    '.sl/config',
    '.jj/workspace-config.toml',
    'prek.toml',
    'hk.pkl',
    'mise/config.toml',
    '.miserc.toml',
    '.lazy.lua',
    '.agents/plugins/x/plugin.json',
    '.agents/skills/x/SKILL.md',
    '.clinerules/hooks/TaskStart',
    '.kiro/agents/x.json',
    '.github/extensions/x/extension.mjs',
    '.github/mcp.json',
    '.github/copilot/settings.json',
    '.grok/hooks/x.json',
    '.pdbrc',
    '.Renviron',
    '.RData',
    '.ghci',
  ])('%s is protected', path => expect(covers(path)).toBe(true))

  test.each([
    '.git/HEAD',
    '.git/index',
    '.git/objects/ab',
    '.git/refs/heads/main',
    'package.json',
    'Makefile',
    'conftest.py',
    'build.rs',
    '.github/workflows/ci.yml',
    '.github/dependabot.yml',
    '.clinerules/style.md',
    '.agents/notes.md',
    '.kiro/specs/a.md',
    '.hg/store/data/x',
    '.jj/repo/op_store/x',
    'mise/README.md',
    'CLAUDE.md',
    'AGENTS.md',
    '.claude/worktrees/topic/src/a.ts',
    '.cargo/registry',
    '.yarn/cache/x.zip',
    '.gitignore',
    '.gitattributes',
    '.editorconfig',
    'src/.npmrc',
  ])("%s is the agent's to write", path => expect(covers(path)).toBe(false))

  test('every place has a reason, is relative and plain, and stands once', () => {
    expect(new Set(paths).size).toBe(paths.length)
    for (const { path, why } of PROTECTED_PLACES) {
      expect(why.length).toBeGreaterThan(10)
      expect(path.split('/').every(c => c !== '' && c !== '.' && c !== '..' && !/[*?\\]/.test(c))).toBe(true)
      expect(paths.some(other => other !== path && path.startsWith(`${other}/`))).toBe(false)
    }
  })

  test('no place is both protected and listed as changed', () => {
    expect(RUN_LATER.filter(covers)).toEqual([])
  })
})

test.each(['.env', '.env.local', '.env.example', '.envrc'])('%s is denied', path => {
  const globs = DENIED_GLOBS.map(text => parseGlob(text))
  expect(globs.some(g => g.ok && globMatches(g.value, path))).toBe(true)
})

test.each(['env', 'src/env.ts', 'environment.md'])('%s is not denied', path => {
  const globs = DENIED_GLOBS.map(text => parseGlob(text))
  expect(globs.some(g => g.ok && globMatches(g.value, path))).toBe(false)
})
