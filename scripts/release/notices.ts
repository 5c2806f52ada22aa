import type { Part } from './contents.ts'

/** The licences of everything in the program, as they ask for. */
export function notices(parts: readonly Part[], runtime: string): string {
  const packages = parts.map(
    ({ name, version, license, text }) =>
      `## ${name} ${version} (${license})\n\n\`\`\`text\n${text.trim().replaceAll('\r', '')}\n\`\`\`\n`,
  )
  return ['# What is in pen, and its licences\n', ...packages, runtime].join('\n')
}
