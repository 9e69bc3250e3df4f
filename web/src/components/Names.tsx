/** Names of entities and people: each is a link, and resource names are shortened and can be copied. */
import { ActionIcon, CopyButton, Popover, UnstyledButton, VisuallyHidden } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Link } from "react-router";
import type { CatalogRef, OwnerRef, Person } from "../api/types";
import { enumeration, listParts } from "../lib/list";
import { displayName, shortName, textParts } from "../lib/names";
import { Avatar } from "./Avatar";
import classes from "./Names.module.css";
import { PersonCard } from "./PersonCard";

/** RefKind is the kind of an entity with a page of its own, as the page's path has it. */
export type RefKind = "applications" | "resources";

/** CopyName is a button that copies a name. */
export function CopyName({ name, label }: { name: string; label?: string }) {
  const { t } = useTranslation();
  return (
    <CopyButton value={name}>
      {({ copied, copy }) => (
        <ActionIcon className={classes.copy} variant="subtle" color="gray" size="xs" onClick={copy} aria-label={copied ? t("action.copied") : `${label ?? t("action.copy")}: ${name}`}>
          {copied ? <IconCheck size={13} aria-hidden /> : <IconCopy size={13} aria-hidden />}
        </ActionIcon>
      )}
    </CopyButton>
  );
}

/** ShortName shows a name in its short form (`redis / bobs-cluster`), the full name on hover and for screen readers, and a button to copy it. */
export function ShortName({ name }: { name: string }) {
  return (
    <span className={classes.name}>
      <span className={classes.short} title={name}>
        <span aria-hidden>{shortName(name)}</span>
        <VisuallyHidden>{name}</VisuallyHidden>
      </span>
      <CopyName name={name} />
    </span>
  );
}

interface RefNameProps {
  kind: RefKind;
  about: CatalogRef;
  /** Adds the short resource name below the title. */
  full?: boolean;
}

/** RefName shows the title of an application or resource, as a link if the catalog has it. With `full`, its name is below. */
export function RefName({ kind, about, full = false }: RefNameProps) {
  const title = about.id ? (
    <Link className={classes.link} to={`/${kind}/${encodeURIComponent(about.id)}`} title={about.name}>
      {about.title}
    </Link>
  ) : (
    <span className={classes.link} title={about.name}>
      {about.title}
    </span>
  );
  if (!full) return title;
  return (
    <span className={classes.stack}>
      {title}
      <ShortName name={about.name} />
    </span>
  );
}

/** PersonName shows a person's name; a click opens the person's card. */
export function PersonName({ person, size }: { person: Person; size?: number }) {
  const [open, setOpen] = useState(false);
  return (
    <Popover opened={open} onChange={setOpen} position="bottom-start" shadow="md" trapFocus returnFocus withRoles={false}>
      <Popover.Target>
        <UnstyledButton className={classes.person} onClick={() => setOpen(!open)} aria-expanded={open} aria-haspopup="dialog" title={person.title} data-testid={`person-${person.id}`}>
          <Avatar name={person.displayName} size={size ?? 20} />
          {person.displayName}
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown role="dialog" aria-label={person.displayName}>
        {open && <PersonCard person={person} />}
      </Popover.Dropdown>
    </Popover>
  );
}

/** Owners shows the names of owners as a list. */
export function Owners({ owners }: { owners: OwnerRef[] }) {
  const { i18n } = useTranslation();
  return <>{enumeration(owners.map((owner) => owner.displayName), i18n.language)}</>;
}

/** anyone is the subject of a statement that stands for every client. */
const anyone = "*";

interface NameListProps {
  names: string[];
  /** The references to the names that the catalog has. */
  refs?: CatalogRef[] | undefined;
  /** The number of names that are shown at most; by default all. The others are counted. */
  limit?: number | undefined;
}

/** NameList shows the names of a statement as a list of their titles, each with the exact name on hover. */
export function NameList({ names, refs, limit }: NameListProps) {
  const { t, i18n } = useTranslation();
  const shown = names.slice(0, limit);
  const texts = shown.map((name) => (name === anyone ? t("accessReview.anyone") : displayName(name, refs)));
  if (names.length > shown.length) texts.push(t("accessReview.moreNames", { count: names.length - shown.length }));
  return <>{listParts(texts, i18n.language).map(({ index, text }) => (index === undefined ? text : <strong key={index} title={shown[index]}>{text}</strong>))}</>;
}

/** NamedText shows a text in which the titles replace resource names, each with the exact name on hover. */
export function NamedText({ text, refs }: { text: string; refs?: CatalogRef[] | undefined }) {
  return <>{textParts(text, refs).map((part, key) => (part.name === undefined ? part.text : <span key={key} title={part.name}>{part.text}</span>))}</>;
}
