/** Every key of the config as `pen config get` and `pen config set` take it, from the schema itself. */
import { configSchema } from '../../policy/schema.ts'

interface Schema {
  readonly entries?: Readonly<Record<string, Schema>>
  readonly wrapped?: Schema
}

/** Leaves, and what holds them: both can be asked for. */
export const configKeys = (): string[] => below(configSchema as unknown as Schema)

function below(schema: Schema): string[] {
  const { entries = {} } = unwrap(schema)
  return Object.entries(entries)
    .filter(([name]) => /^[a-z]\w*$/i.test(name))
    .flatMap(([name, part]) => [name, ...below(part).map(key => `${name}.${key}`)])
}

const unwrap = (schema: Schema): Schema => (schema.wrapped === undefined ? schema : unwrap(schema.wrapped))
