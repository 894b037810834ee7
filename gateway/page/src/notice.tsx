/** The message while there is nothing to show, or when the server does not answer. */

export function Notice({ error, quiet = false }: { error: Error | null; quiet?: boolean }) {
  if (error) {
    return (
      <p role="alert" className="notice bad">
        {error.message}
        {quiet ? ' What is shown may be old; trying again.' : ''}
      </p>
    );
  }
  return quiet ? null : (
    <p className="notice dim" role="status">
      Loading …
    </p>
  );
}
