/** Frame of the page: breadcrumbs, one view, and the login if the server needs a token. */
import { lazy, Suspense, useEffect, useRef, useState } from 'react';
import { SWRConfig } from 'swr';
import { access, forgetToken, hasToken, storeToken, takeKeyFromAddress, Unauthorized } from './api.ts';
import { Compare } from './compare.tsx';
import { LOADING } from './load.ts';
import { Notice } from './notice.tsx';
import { Rollout } from './rollout.tsx';
import { nameOf, type Route, toRollout, toRun, toRuns, toTrends, useRoute } from './route.ts';
import { Run } from './run.tsx';
import { Runs } from './runs.tsx';

// The chart library is larger than the rest of the page, so only this view loads it.
const Trends = lazy(() => import('./trends.tsx').then(({ Trends }) => ({ default: Trends })));

takeKeyFromAddress();

export function App() {
  const [state, setState] = useState<'asking' | 'in' | 'out'>('asking');
  useEffect(() => {
    access().then(
      (granted) => setState(granted ? 'in' : 'out'),
      // The view shows the error of an unreachable server and retries.
      () => setState('in'),
    );
  }, []);
  if (state === 'asking') return <Notice error={null} />;
  if (state === 'out') return <Login onDone={() => setState('in')} />;
  return <Frame onLeave={() => setState('out')} />;
}

function Frame({ onLeave }: { onLeave: () => void }) {
  const { route, query } = useRoute();
  const main = useRef<HTMLElement>(null);
  const trail = crumbs(route);
  const address = JSON.stringify(route);
  const first = useRef(true);
  // A new view scrolls to its start and gets the focus, for screen readers.
  // biome-ignore lint/correctness/useExhaustiveDependencies: only a change of the route moves the focus
  useEffect(() => {
    document.title = Array.from(trail, ([name]) => name)
      .reverse()
      .join(' · ');
    if (!first.current) {
      main.current?.focus({ preventScroll: true });
      scrollTo(0, 0);
    }
    first.current = false;
  }, [address]);
  return (
    <>
      <button type="button" className="visually-hidden" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header className="top">
        <nav aria-label="Where you are">
          <ol>
            {trail.map(([name, to]) => (
              <li key={to}>
                <a href={to}>{name}</a>
              </li>
            ))}
          </ol>
        </nav>
        {hasToken() && (
          <button
            type="button"
            className="quiet"
            onClick={() => {
              forgetToken();
              onLeave();
            }}
          >
            Forget token
          </button>
        )}
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        {/* Each view has its own cache, which is freed when the user leaves the view. */}
        <SWRConfig
          key={trail.join()}
          value={{ ...LOADING, onError: (error) => error instanceof Unauthorized && onLeave() }}
        >
          <Suspense fallback={<Notice error={null} />}>
            <View route={route} query={query} />
          </Suspense>
        </SWRConfig>
      </main>
    </>
  );
}

function View({ route: { view, run, rollouts, tab }, query }: { route: Route; query: URLSearchParams }) {
  const [one = '', other = ''] = rollouts;
  if (view === 'run') return <Run id={run} tab={tab} query={query} />;
  if (view === 'rollout') return <Rollout id={one} />;
  if (view === 'compare') return <Compare ids={[one, other]} />;
  return view === 'trends' ? <Trends query={query} /> : <Runs />;
}

function crumbs({ view, run, rollouts }: Route): [string, string][] {
  const all: [string, string][] = [['swefarm', toRuns]];
  if (view === 'trends') all.push(['Trends', toTrends()]);
  if (run !== '') all.push([run, toRun(run)]);
  for (const id of rollouts) all.push([nameOf(id), toRollout(id)]);
  return all;
}

const UNKNOWN = 'Unknown token.';

/** Asks for the gateway's token. */
function Login({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState('');
  const [problem, setProblem] = useState(hasToken() ? UNKNOWN : null);
  const enter = async (): Promise<void> => {
    storeToken(token.trim());
    try {
      if (await access()) return onDone();
    } catch (error) {
      if (!(error instanceof Unauthorized)) {
        setProblem(`The server did not check the token: ${(error as Error).message}`);
        return;
      }
    }
    forgetToken();
    setProblem(UNKNOWN);
  };
  return (
    <main className="login">
      <h1>swefarm</h1>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void enter();
        }}
      >
        <input type="text" autoComplete="username" value="gateway" readOnly hidden />
        <label htmlFor="token">Token of the gateway</label>
        <input
          id="token"
          type="password"
          size={40}
          autoComplete="current-password"
          required
          value={token}
          onChange={(event) => setToken(event.target.value)}
          aria-describedby="token-help"
        />
        <button type="submit">Open</button>
        <p id="token-help" role={problem === null ? undefined : 'alert'}>
          {problem ?? 'The token is stored in this tab until it is closed, and sent only as a header.'}
        </p>
      </form>
    </main>
  );
}
