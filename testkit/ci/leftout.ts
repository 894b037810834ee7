// A vitest reporter: writes a JSON line for each skipped test, with the reason, for the closing lines of `npm test`.
// A test that cannot run on a machine calls vitest's `skip(why)`. summary.ts counts a test that is skipped without a reason as failed.
import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';
import type { Reporter, TestModule } from 'vitest/node';

class LeftOut implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]): void {
    const path = process.env.SWEFARM_TEST_LEFT_OUT;
    if (!path) return;
    for (const module of modules) {
      for (const test of module.children.allTests('skipped')) {
        const result = test.result();
        const why = result.state === 'skipped' ? (result.note ?? null) : null;
        // The test was skipped because a hook failed. The failure of the file counts instead.
        if (why === null && module.state() === 'failed') continue;
        const file = relative(process.cwd(), module.moduleId);
        appendFileSync(path, `${JSON.stringify({ file, name: test.fullName, why })}\n`);
      }
    }
  }
}

// biome-ignore lint/style/noDefaultExport: the form that vitest takes reporters in
export { LeftOut as default };
