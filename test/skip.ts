/**
 * The only way to skip a test: when the machine lacks something that pen does not bring itself.
 *
 *     const onPodman = skipUnless(await podmanWorks(), 'podman is missing')
 *     onPodman('P1 a file outside the grants is not there', async () => { … })
 *
 * With PEN_REQUIRE_ALL=1 (as in CI) the test fails instead, so no test is skipped silently.
 */
import { test } from 'bun:test'

export type DefineTest = (title: string, body: () => void | Promise<void>, timeout?: number) => void

export function skipUnless(available: boolean, reason: string): DefineTest {
  if (available) return (title, body, timeout) => void test(title, body, timeout)
  console.log(`skipped: ${reason}`)
  if (process.env['PEN_REQUIRE_ALL'] === '1')
    return title =>
      void test(title, () => {
        throw new Error(`skipped: ${reason} (PEN_REQUIRE_ALL=1)`)
      })
  return (title, body) => void test.skip(title, body)
}

/**
 * For a claim about one kind of user (root, or the others). For the other kind it defines no test, and nothing
 * counts as skipped. Never for a missing engine or tool.
 */
export function onlyWhen(applies: boolean): DefineTest {
  return (title, body, timeout) => {
    if (applies) test(title, body, timeout)
  }
}
