import { Link, useLocation } from "react-router";
import classes from "./SubNav.module.css";

interface Props {
  label: string;
  places: { to: string; label: string }[];
}

/** SubNav links the pages of one subject. */
export function SubNav({ label, places }: Props) {
  const { pathname } = useLocation();
  return (
    <nav className={classes.nav} aria-label={label}>
      {places.map(({ to, label: name }) => (
        <Link key={to} to={to} className={classes.link} aria-current={pathname === to ? "page" : undefined}>
          {name}
        </Link>
      ))}
    </nav>
  );
}
