import { TextInput } from "@mantine/core";
import type { TextInputProps } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { IconSearch } from "@tabler/icons-react";
import { useState } from "react";

interface Props extends Pick<TextInputProps, "size" | "className" | "flex" | "maw"> {
  label: string;
  /** An example in the empty field. The label is then shown above the field, and otherwise in it. */
  placeholder?: string;
  /** The value in the URL. The field follows when it changes elsewhere. */
  value: string;
  onChange: (text: string) => void;
  testId: string;
}

/** SearchField reports its text after the person stops typing for a moment. */
export function SearchField({ label, placeholder, value, onChange, testId, ...rest }: Props) {
  const [text, setText] = useState(value);
  const [known, setKnown] = useState(value);
  if (value !== known) {
    setKnown(value);
    if (value !== text.trim()) setText(value);
  }
  const apply = useDebouncedCallback((next: string) => onChange(next.trim()), 200);
  return (
    <TextInput
      type="search"
      leftSection={<IconSearch size={15} aria-hidden />}
      {...(placeholder === undefined ? { placeholder: label, "aria-label": label } : { placeholder, label })}
      value={text}
      maxLength={200}
      onChange={(event) => {
        setText(event.currentTarget.value);
        apply(event.currentTarget.value);
      }}
      data-testid={testId}
      {...rest}
    />
  );
}
