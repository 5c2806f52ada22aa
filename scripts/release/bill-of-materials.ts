import type { Part } from './contents.ts'

/** CycloneDX, without its date and serial number: two releases of one commit are equal. */
export function billOfMaterials(version: string, parts: readonly Part[]): string {
  const bill = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    version: 1,
    metadata: {
      component: { type: 'application', name: 'pen', version, licenses: [{ license: { id: 'Apache-2.0' } }] },
    },
    components: parts.map(part => ({
      type: part.text === '' ? 'platform' : 'library',
      'bom-ref': urlOf(part),
      name: part.name,
      version: part.version,
      purl: urlOf(part),
      licenses: [{ license: { id: part.license } }],
      hashes: [
        {
          alg: 'SHA-512',
          content: Buffer.from(part.integrity.replace('sha512-', ''), 'base64').toString('hex'),
        },
      ],
    })),
  }
  return `${JSON.stringify(bill, undefined, 2)}\n`
}

const urlOf = ({ name, version }: Part): string => `pkg:npm/${name.replace('@', '%40')}@${version}`
