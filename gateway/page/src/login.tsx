/** Asks for the gateway's token. */
import { useState } from 'react';
import { access, forgetToken, hasToken, storeToken } from './api.ts';

export function Login({ onDone }: { onDone: () => void }) {
  const [token, setToken] = useState('');
  const [refused, setRefused] = useState(hasToken);
  const enter = async (): Promise<void> => {
    storeToken(token.trim());
    if (await access().catch(() => false)) return onDone();
    forgetToken();
    setRefused(true);
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
        <p id="token-help" role={refused ? 'alert' : undefined}>
          {refused
            ? 'Unknown token.'
            : 'The token is stored in this tab until it is closed, and sent only as a header.'}
        </p>
      </form>
    </main>
  );
}
