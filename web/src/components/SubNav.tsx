import { Link, useLocation } from "react-router";
import classes from "./SubNav.module.css";

interface Props {
  label: string;
  places: { to: string; label: string }[];
}

/** The pages of one subject, side by side. */
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
