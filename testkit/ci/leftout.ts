// A vitest reporter: what tests left out on this machine and why, a JSON line each, for the closing lines of `npm test`.
// A test that cannot run here says so by vitest's own `skip(why)`; one that is skipped without a reason is a failure there.
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
        // Skipped because a hook failed: that failure counts, and what the second run of the file makes of it.
        if (why === null && module.state() === 'failed') continue;
        const file = relative(process.cwd(), module.moduleId);
        appendFileSync(path, `${JSON.stringify({ file, name: test.fullName, why })}\n`);
      }
    }
  }
}

// biome-ignore lint/style/noDefaultExport: the form that vitest takes reporters in
export { LeftOut as default };
