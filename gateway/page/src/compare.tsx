/** Two rollouts side by side: their turns, their patches, and the first turn that differs. */
import { useMemo } from 'react';
import type { PageDetail } from '../../src/page/data.ts';
import { rolloutPath } from './api.ts';
import { Facts } from './facts.tsx';
import { useLoaded } from './load.ts';
import { nameOf } from './names.ts';
import { Notice } from './notice.tsx';
import { Patches } from './patch.tsx';
import { toRollout } from './route.ts';
import { Timing } from './timing.tsx';
import { Turn } from './turn.tsx';
import { parting, type ShownTurn, shownTurns } from './turns.ts';

export function Compare({ ids }: { ids: [string, string] }) {
  const one = useLoaded<PageDetail>(rolloutPath(ids[0]));
  const other = useLoaded<PageDetail>(rolloutPath(ids[1]));
  if (!one.value || !other.value) return <Notice error={one.error ?? other.error} />;
  return <Both ids={ids} one={one.value} other={other.value} />;
}

function Both({ ids, one, other }: { ids: [string, string]; one: PageDetail; other: PageDetail }) {
  const turns = useMemo(
    () => [one, other].map((detail) => (detail.trajectory ? shownTurns(detail.trajectory).turns : [])),
    [one, other],
  );
  const [left = [], right = []] = turns;
  const parts = useMemo(() => parting(left, right), [left, right]);
  const rows = Math.max(left.length, right.length);
  return (
    <>
      <h1>Side by side</h1>
      <div className="pair">
        {[one, other].map((detail, at) => (
          <section key={ids[at]} aria-label={nameOf(ids[at] ?? '')}>
            <h2>
              <a className="mono" href={toRollout(ids[at] ?? '')}>
                {nameOf(ids[at] ?? '')}
              </a>
            </h2>
            <Facts detail={detail} turns={turns[at]?.length ?? 0} />
            {detail.result && <Timing seconds={detail.result.seconds} />}
          </section>
        ))}
      </div>
      <h2>Patches</h2>
      <Patches
        left={{ name: nameOf(ids[0]), patch: one.patch, none: 'No patch.' }}
        right={{ name: nameOf(ids[1]), patch: other.patch, none: 'No patch.' }}
      />
      <h2>
        Turns{' '}
        <span className="dim">
          {parts === null ? 'no turn differs' : `they differ from turn ${parts + 1}`}
        </span>
      </h2>
      <div className="pair turns">
        {Array.from({ length: rows }, (_, at) => [
          <Half key={`${ids[0]} ${at}`} id={ids[0]} shown={left[at]} differs={at === parts} />,
          <Half key={`${ids[1]} ${at}`} id={ids[1]} shown={right[at]} differs={at === parts} />,
        ])}
      </div>
    </>
  );
}

function Half({ id, shown, differs }: { id: string; shown: ShownTurn | undefined; differs: boolean }) {
  if (!shown) return <div className="turn none" />;
  return <Turn rollout={id} shown={shown} narrow differs={differs} />;
}
