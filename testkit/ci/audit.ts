/**
 * `npm audit --json | node testkit/ci/audit.ts`: fails when a dependency has a known vulnerability of severity high or critical. If the
 * registry answers no audits (a mirror), the check passes and prints that nothing was audited.
 */
import { text } from 'node:stream/consumers';
import { z } from 'zod';

const Report = z.object({
  vulnerabilities: z.record(
    z.string(),
    z.object({ severity: z.string(), range: z.string(), via: z.array(z.unknown()) }),
  ),
  metadata: z.object({ dependencies: z.object({ total: z.number() }) }),
});
/** An advisory in `via`. A plain name in `via` refers to another package of the report. */
const Advisory = z.object({ title: z.string(), url: z.string() });

const SERIOUS = ['high', 'critical'];

const report = Report.safeParse(parse(await text(process.stdin)));
if (!report.success) {
  console.log(
    'AUDIT NOT ANSWERED: the registry gave no report on dependencies; run npm audit with a registry that does',
  );
} else {
  const { vulnerabilities, metadata } = report.data;
  const serious = Object.entries(vulnerabilities).filter(([, { severity }]) => SERIOUS.includes(severity));
  for (const [name, { severity, range, via }] of serious) {
    const why = via.flatMap((one) => Advisory.safeParse(one).data ?? []);
    console.log(`${severity}: ${name} ${range} ${why.map(({ title, url }) => `${title} ${url}`).join('; ')}`);
  }
  console.log(
    `AUDIT: ${serious.length} high or critical, ${Object.keys(vulnerabilities).length} in all, ${metadata.dependencies.total} dependencies`,
  );
  if (serious.length > 0) process.exitCode = 1;
}

function parse(given: string): unknown {
  try {
    return JSON.parse(given);
  } catch {
    return null;
  }
}
