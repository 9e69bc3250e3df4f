import { ActionIcon, Button, Chip, Group, Input, Select, Switch, TextInput } from "@mantine/core";
import { IconX } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { DailyPeriod, WeeklyHours } from "../api/types";
import { dayName, periodLimit, usualPeriod, weekdays } from "../lib/hours";
import { useZone } from "../lib/use-zone";
import duration from "./DurationField.module.css";
import classes from "./HoursField.module.css";

interface PeriodProps {
  period: DailyPeriod;
  position: number;
  onChange: (period: DailyPeriod) => void;
  /** Absent if the period is the only one. */
  onRemove: (() => void) | undefined;
}

function Period({ period, position, onChange, onRemove }: PeriodProps) {
  const { t, i18n } = useTranslation();
  return (
    <div className={classes.period} role="group" aria-label={t("request.hours.period", { number: position + 1 })}>
      <Chip.Group multiple value={period.days} onChange={(days) => onChange({ ...period, days: weekdays.filter((day) => days.includes(day)) })}>
        <div className={duration.choices} role="group" aria-label={t("request.hours.days")}>
          {weekdays.map((day) => (
            <Chip key={day} value={day} variant="light" radius="sm" size="sm" data-testid={`hours-${position}-${day}`}>
              {dayName(day, i18n.language)}
            </Chip>
          ))}
        </div>
      </Chip.Group>
      <Group gap="sm" align="flex-end">
        <TextInput type="time" label={t("request.hours.from")} value={period.from} onChange={(event) => onChange({ ...period, from: event.currentTarget.value })} data-testid={`hours-${position}-from`} />
        <TextInput type="time" label={t("request.hours.to")} value={period.to} onChange={(event) => onChange({ ...period, to: event.currentTarget.value })} data-testid={`hours-${position}-to`} />
        {onRemove && (
          <ActionIcon variant="subtle" color="gray" onClick={onRemove} aria-label={t("request.hours.remove", { number: position + 1 })}>
            <IconX size={15} aria-hidden />
          </ActionIcon>
        )}
      </Group>
    </div>
  );
}

interface Props {
  value: WeeklyHours | undefined;
  onChange: (value: WeeklyHours | undefined) => void;
  error: string | undefined;
}

/** HoursField is the field for the hours to which access is restricted. Without a value, it is given at any hour. */
export function HoursField({ value, onChange, error }: Props) {
  const { t } = useTranslation();
  const here = useZone();
  const zones = [...new Set([here, ...(value ? [value.timeZone] : []), "UTC", ...Intl.supportedValuesOf("timeZone")])];
  const change = (periods: DailyPeriod[]) => value && onChange({ ...value, periods });
  return (
    <Input.Wrapper error={error} data-field="hours">
      <Switch
        label={t("request.hours.only")}
        description={t("request.hours.onlyHint")}
        checked={value !== undefined}
        onChange={(event) => onChange(event.currentTarget.checked ? { timeZone: here, periods: [usualPeriod] } : undefined)}
        data-testid="hours-only"
      />
      {value && (
        <div className={classes.hours}>
          {value.periods.map((period, position) => (
            <Period
              key={position}
              period={period}
              position={position}
              onChange={(next) => change(value.periods.map((each, index) => (index === position ? next : each)))}
              onRemove={value.periods.length > 1 ? () => change(value.periods.filter((_, index) => index !== position)) : undefined}
            />
          ))}
          <Group gap="sm" align="flex-end">
            <Select searchable allowDeselect={false} label={t("request.hours.zone")} data={zones} value={value.timeZone} onChange={(timeZone) => timeZone && onChange({ ...value, timeZone })} data-testid="hours-zone" />
            {value.periods.length < periodLimit && (
              <Button variant="default" onClick={() => change([...value.periods, { days: ["Sat", "Sun"], from: "10:00", to: "16:00" }])} data-testid="hours-add">
                {t("request.hours.add")}
              </Button>
            )}
          </Group>
        </div>
      )}
    </Input.Wrapper>
  );
}
