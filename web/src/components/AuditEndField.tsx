import { Chip, Group, Input, TextInput } from "@mantine/core";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { auditChoices } from "../lib/temporary-audit";
import type { AuditEndForm } from "../lib/temporary-audit";
import { useZone } from "../lib/use-zone";

interface Props {
  label: string;
  value: AuditEndForm;
  onChange: (value: AuditEndForm) => void;
  error: ReactNode;
  /** The beginning of the test ids of the choices. */
  testId: string;
}

/** AuditEndField selects when a temporary audit or a downgrade ends: after one of the offered durations, or at a time in the person's zone. */
export function AuditEndField({ label, value, onChange, error, testId }: Props) {
  const { t } = useTranslation();
  return (
    <Input.Wrapper label={label} description={t("audit.zone", { zone: useZone() })} error={error} required labelElement="div">
      <Chip.Group value={value.choice} onChange={(next) => onChange({ ...value, choice: auditChoices.find((each) => each === next) ?? value.choice })}>
        <Group gap={8} mt={6} role="radiogroup" aria-label={t("audit.end")}>
          {auditChoices.map((each) => (
            <Chip key={each} value={each} variant="light" radius="sm" size="sm" data-testid={`${testId}-${each}`}>
              {t(`audit.choice.${each}`)}
            </Chip>
          ))}
        </Group>
      </Chip.Group>
      {value.choice === "custom" && <TextInput mt="sm" type="datetime-local" aria-label={t("audit.until")} value={value.wall} onChange={(event) => onChange({ ...value, wall: event.currentTarget.value })} data-testid={`${testId}-until`} />}
    </Input.Wrapper>
  );
}
