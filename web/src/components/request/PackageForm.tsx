import { ActionIcon, Button, Group, MultiSelect, Radio, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import { asApiError } from "../../api/client";
import { usePackage, usePackageHolders } from "../../api/packages";
import { usePerson, useResource } from "../../api/queries";
import type { PackageChain } from "../../api/types";
import { hoursError } from "../../lib/hours";
import { durationOf, formOf, isWhole, packageBody, packageName, partLimit } from "../../lib/packages";
import type { PackageForm as Values, PackagePart } from "../../lib/packages";
import { durationError } from "../../lib/request";
import { useDraft } from "../../lib/use-draft";
import { usePlan } from "../../lib/use-plan";
import { useRequest } from "../../lib/use-request";
import { DurationField } from "../DurationField";
import { ResourceSelect } from "../EntitySelect";
import { Loaded, Notice } from "../Feedback";
import { HoursField } from "../HoursField";
import classes from "./Request.module.css";
import { RequestFrame } from "./RequestFrame";
import { RequestPreview } from "./RequestPreview";

const chains = ["owners", "publisher"] as const satisfies readonly PackageChain[];

const nothing: Values = { name: "", title: "", description: "", team: "", duration: durationOf(90 * 86_400), chain: "owners", parts: [{ resource: "", actions: [] }], reason: "" };

const isPart = (value: unknown): value is PackagePart => typeof value === "object" && value !== null && typeof (value as PackagePart).resource === "string" && Array.isArray((value as PackagePart).actions);

function isValues(value: unknown): value is Values {
  if (typeof value !== "object" || value === null) return false;
  const { name, title, description, team, reason, parts, duration, chain } = value as Record<string, unknown>;
  return [name, title, description, team, reason].every((each) => typeof each === "string") && Array.isArray(parts) && parts.every(isPart) && typeof duration === "object" && duration !== null && chains.some((each) => each === chain);
}

interface PartProps {
  part: PackagePart;
  position: number;
  tried: boolean;
  onChange: (part: PackagePart) => void;
  /** Absent if the part is the only one. */
  onRemove: (() => void) | undefined;
}

function Part({ part, position, tried, onChange, onRemove }: PartProps) {
  const { t } = useTranslation();
  const known = useResource(part.resource).data?.actions.map(({ name }) => name) ?? part.actions;
  return (
    <Group align="flex-start" gap="sm" wrap="wrap" role="group" aria-label={t("packages.part", { number: position + 1 })}>
      <ResourceSelect w={260} label={t("packages.resource")} required value={part.resource} onChange={(resource) => onChange({ resource, actions: [] })} error={tried && part.resource === "" && t("packages.error.resource")} nothingFound={t("packages.noMatch")} testId={`package-resource-${position}`} />
      <MultiSelect w={260} label={t("packages.actions")} required disabled={part.resource === ""} data={known} value={part.actions} onChange={(actions) => onChange({ ...part, actions })} error={tried && part.resource !== "" && part.actions.length === 0 && t("packages.error.actions")} data-testid={`package-actions-${position}`} />
      {onRemove && (
        <ActionIcon mt={28} variant="subtle" color="gray" onClick={onRemove} aria-label={t("packages.removePart", { number: position + 1 })}>
          <IconX size={15} aria-hidden />
        </ActionIcon>
      )}
    </Group>
  );
}

interface ReachProps {
  name: string;
  value: boolean;
  onChange: (toHolders: boolean) => void;
}

/** Reach chooses whether existing holders are given the version. It shows nothing if no application holds the package. */
function Reach({ name, value, onChange }: ReachProps) {
  const { t } = useTranslation();
  const held = usePackageHolders(name).data?.pages.some(({ items }) => items.length > 0) ?? false;
  if (!held && !value) return null;
  return (
    <Radio.Group label={t("packages.reach")} description={t("packages.reachHint")} value={value ? "give" : "keep"} onChange={(next) => onChange(next === "give")}>
      <Stack gap="xs" mt="xs">
        <Radio value="keep" label={t("packages.reachChoice.keep")} data-testid="package-reach-keep" />
        <Radio value="give" label={t("packages.reachChoice.give")} data-testid="package-reach-give" />
      </Stack>
    </Radio.Group>
  );
}

function Form({ person, initial }: { person: string; initial: Values }) {
  const { t } = useTranslation();
  const { form, change, restored } = useDraft<Values>(person, () => initial, isValues);
  const groups = usePerson(person).data?.groups ?? [];
  const teams = groups.map(({ id, displayName }) => ({ value: id, label: displayName }));
  if (form.team !== "" && !teams.some(({ value }) => value === form.team)) teams.push({ value: form.team, label: form.team });
  const body = packageBody(form);
  const { query, isRequested } = usePlan(body);
  const { tried, submit, sending, error } = useRequest();
  const wrong = tried ? durationError(form.duration) : undefined;
  const isNew = initial.name === "";
  return (
    <RequestFrame
      restored={restored}
      reason={form.reason}
      onReason={(reason) => change({ reason })}
      tried={tried}
      onSubmit={() => submit(body, form.reason)}
      sending={sending}
      error={error}
      atField={error ? asApiError(error).itemMessage(0) !== undefined && query.data?.items[0]?.problem !== undefined : false}
      aside={<RequestPreview isRequested={isRequested} query={query} nameOf={() => form.title} empty={t("packages.formEmpty")} />}
    >
      <p className={classes.muted}>{t("packages.formIntro")}</p>
      <TextInput label={t("packages.id")} description={t("packages.idHint")} required disabled={!isNew} maxLength={63} spellCheck={false} value={form.name} onChange={(event) => change({ name: event.currentTarget.value })} error={tried && !packageName.test(form.name) && t("packages.error.name")} data-testid="package-name" />
      <TextInput label={t("packages.name")} required maxLength={100} value={form.title} onChange={(event) => change({ title: event.currentTarget.value })} error={tried && form.title.trim() === "" && t("packages.error.title")} data-testid="package-title" />
      <Textarea label={t("packages.description")} autosize minRows={2} maxLength={2000} value={form.description} onChange={(event) => change({ description: event.currentTarget.value })} data-testid="package-description" />
      <Select label={t("packages.team")} description={t("packages.teamHint")} required searchable data={teams} value={form.team || null} onChange={(team) => change({ team: team ?? "" })} error={tried && form.team === "" && t("packages.error.team")} data-testid="package-team" />
      <Stack gap="sm">
        <Text size="sm" fw={500}>{t("packages.content")}</Text>
        {form.parts.map((part, position) => (
          <Part
            key={position}
            part={part}
            position={position}
            tried={tried && !isWhole(part)}
            onChange={(next) => change({ parts: form.parts.map((each, index) => (index === position ? next : each)) })}
            onRemove={form.parts.length > 1 ? () => change({ parts: form.parts.filter((_, index) => index !== position) }) : undefined}
          />
        ))}
        {form.parts.length < partLimit && (
          <div>
            <Button variant="default" size="xs" onClick={() => change({ parts: [...form.parts, { resource: "", actions: [] }] })} data-testid="package-add-part">
              {t("packages.addPart")}
            </Button>
          </div>
        )}
      </Stack>
      <DurationField value={form.duration} onChange={(duration) => change({ duration })} description={t("packages.durationHint")} error={wrong && t("packages.error.range")} />
      <HoursField value={form.hours} onChange={(hours) => change({ hours })} error={tried && hoursError(form.hours) ? t("packages.error.hours") : undefined} />
      <Radio.Group label={t("packages.chain")} description={t("packages.chainHint")} value={form.chain} onChange={(next) => change({ chain: chains.find((each) => each === next) ?? form.chain })}>
        <Stack gap="xs" mt="xs">
          {chains.map((each) => (
            <Radio key={each} value={each} label={t(`packages.chainChoice.${each}`)} data-testid={`package-chain-${each}`} />
          ))}
        </Stack>
      </Radio.Group>
      {!isNew && <Reach name={form.name} value={form.toHolders ?? false} onChange={(toHolders) => change({ toHolders })} />}
    </RequestFrame>
  );
}

function Next({ person, name }: { person: string; name: string }) {
  const { t } = useTranslation();
  const query = usePackage(name);
  return <Loaded query={query}>{(of) => (of.can.publish ? <Form key={of.version} person={person} initial={formOf(of)} /> : <Notice testId="package-not-yours">{t("packages.notYours", { team: of.team.displayName })}</Notice>)}</Loaded>;
}

/** PackageForm requests the publication of a new access package, or of the next version of the one with the name. */
export function PackageForm({ person, name }: { person: string; name: string }) {
  return name === "" ? <Form person={person} initial={nothing} /> : <Next person={person} name={name} />;
}
