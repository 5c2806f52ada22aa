/** Asks pen about each tool call. A call that fails in the plugin is not run, and the model reads why. */
export const opencodePlugin = (
  command: string,
): string => `// Written by pen hook opencode: shell commands run in pen's sandbox.
const { spawnSync } = process.getBuiltinModule('node:child_process')
export const Pen = async ({ directory }) => ({
  'tool.execute.before': async ({ tool }, output) => {
    const input = JSON.stringify({ tool_name: tool, tool_input: output.args, cwd: directory })
    const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', ${JSON.stringify(command)}], { input, encoding: 'utf8', cwd: directory })
    if (status !== 0) throw new Error(stderr || 'pen did not answer')
    if (stdout === '') return
    const { deny, input: changed } = JSON.parse(stdout)
    if (deny !== undefined) throw new Error(deny)
    Object.assign(output.args, changed)
  },
})
`
