import { initials } from "../lib/names";
import classes from "./Names.module.css";

/** Avatar shows a person's initials. */
export function Avatar({ name, size = 22 }: { name: string; size?: number }) {
  return (
    <span className={classes.avatar} style={{ width: size, height: size, fontSize: size * 0.42 }} aria-hidden>
      {initials(name)}
    </span>
  );
}
