import { TagsInput } from "@mantine/core";
import type { TagsInputProps } from "@mantine/core";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { enteredList, separators } from "../lib/entered-list";
import type { Entered } from "../lib/entered-list";

interface Props extends Pick<TagsInputProps, "label" | "description" | "placeholder" | "required" | "error"> {
  value: string[];
  onChange: (values: string[]) => void;
  /** The maximum number of values. */
  max?: number;
  /** keyOf returns the same text for values that are the same. By default they are equal texts: names differ by case. */
  keyOf?: (value: string) => string;
  testId: string;
}

/** named is the maximum number of values that a message names: a pasted list may have hundreds. */
const named = 5;

const some = (values: string[]): string => [...values.slice(0, named), ...(values.length > named ? ["…"] : [])].join(", ");

/**
 * ListField is the field for a list of names or addresses. A value ends with Enter, a separator, or when the field loses the focus, and several can be
 * pasted. Duplicates and values beyond the maximum are not entered, and the field reports them until the next input.
 */
export function ListField({ value, onChange, max, keyOf, error, testId, ...rest }: Props) {
  const { t } = useTranslation();
  const [last, setLast] = useState<Entered>();
  const enter = (next: string[]) => {
    const entered = enteredList(next, keyOf, max);
    const same = entered.values.length === value.length && entered.values.every((each, index) => each === value[index]);
    // The list of the caller is kept if it does not change, so that the message belongs to the list that is shown.
    setLast(same ? { ...entered, values: value } : entered);
    if (!same) onChange(entered.values);
  };
  const of = last?.values === value ? last : undefined;
  const refused = [
    ...(of && of.surplus.length > 0 ? [t("listField.surplus", { most: max, count: of.surplus.length })] : []),
    ...(of && of.duplicates.length > 0 ? [t("listField.again", { values: some([...new Set(of.duplicates)]) })] : []),
  ];
  return (
    <TagsInput
      splitChars={separators}
      acceptValueOnBlur
      allowDuplicates // enteredList finds them
      value={value}
      onChange={enter}
      onSearchChange={(text) => text !== "" && setLast(undefined)}
      error={refused.length > 0 ? refused.join(" ") : error}
      data-testid={testId}
      {...rest}
    />
  );
}
