import { Fragment } from "react";
import classes from "./Statement.module.css";

/** YAML with its keys set off; small enough not to need an editor. */
export function Statement({ yaml, label }: { yaml: string; label: string }) {
  return (
    // A scrollable region must be reachable by keyboard.
    // eslint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <pre className={classes.code} tabIndex={0} role="region" aria-label={label} data-testid="statement-yaml">
      {yaml.trimEnd().split("\n").map((line, index) => {
        const match = /^(\s*(?:- )?)([\w./-]+)(:(?:\s.*)?)$/.exec(line);
        return (
          <Fragment key={index}>
            {index > 0 && "\n"}
            {match ? (
              <>
                {match[1]}
                <span className={classes.key}>{match[2]}</span>
                {match[3]}
              </>
            ) : (
              line
            )}
          </Fragment>
        );
      })}
    </pre>
  );
}
