import { Chip, Group, Input, NumberInput, Select } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { durationChoices } from "../lib/request";
import type { DurationChoice, DurationValue } from "../lib/request";
import classes from "./DurationField.module.css";

interface Props {
  value: DurationValue;
  onChange: (value: DurationValue) => void;
  error: string | undefined;
  description?: string | undefined;
  /** limited reports whether an end is required. */
  limited?: boolean;
}

/** DurationField is the field for how long access lasts. With `limited`, it does not offer access until revoked. */
export function DurationField({ value, onChange, error, description, limited = false }: Props) {
  const { t } = useTranslation();
  const word = (choice: DurationChoice) => {
    if (choice === "revoked") return t("request.untilRevoked");
    if (choice === "custom") return t("request.custom");
    return t("time.days", { count: Number(choice) });
  };
  return (
    <Input.Wrapper label={t("request.duration")} labelElement="div" error={error} description={description}>
      <Chip.Group value={value.duration} onChange={(next) => onChange({ ...value, duration: durationChoices.find((each) => each === next) ?? value.duration })}>
        <div className={classes.choices} role="radiogroup" aria-label={t("request.duration")}>
          {durationChoices
            .filter((choice) => !limited || choice !== "revoked")
            .map((choice) => (
              <Chip key={choice} value={choice} variant="light" radius="sm" size="sm" data-testid={`duration-${choice}`}>
                {word(choice)}
              </Chip>
            ))}
        </div>
      </Chip.Group>
      {value.duration === "custom" && (
        <Group gap="sm" mt="sm">
          <NumberInput
            aria-label={t("request.customAmount")}
            min={1}
            allowNegative={false}
            w={110}
            value={value.customAmount ?? ""}
            onChange={(amount) => onChange({ ...value, customAmount: typeof amount === "number" ? amount : undefined })}
            data-testid="duration-amount"
          />
          <Select
            aria-label={t("request.customUnit")}
            w={120}
            allowDeselect={false}
            data={[
              { value: "hours", label: t("request.unitHours") },
              { value: "days", label: t("request.unitDays") },
            ]}
            value={value.customUnit}
            onChange={(unit) => onChange({ ...value, customUnit: unit === "days" ? "days" : "hours" })}
          />
        </Group>
      )}
    </Input.Wrapper>
  );
}
