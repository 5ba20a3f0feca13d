//! A request as its members and the items of its conversation, each as the JSON text that arrived:
//! what is kept is kept to the byte.

use super::attachments;
use crate::Api;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The members of a JSON object in their order.
pub(super) struct Members<'j>(pub(super) Vec<(Cow<'j, str>, &'j RawValue)>);

impl<'de: 'j, 'j> serde::Deserialize<'de> for Members<'j> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(key) = map.next_key::<String>()? {
                    members.push((Cow::Owned(key), map.next_value()?));
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(InOrder).map(Members)
    }
}

/// One message or item of a conversation. Its JSON is read anew where it is looked into: read, it
/// takes many times the memory of its text.
pub(super) struct Item<'j> {
    /// Its JSON text.
    pub(super) text: Cow<'j, str>,
    /// How many of its bytes are more than what its attachments cost a model.
    pub(super) beyond_worth: u64,
}

impl<'j> Item<'j> {
    fn read(text: &'j str) -> serde_json::Result<Self> {
        let beyond_worth = attachments::bytes_beyond_worth(&serde_json::from_str(text)?);
        Ok(Self { text: Cow::Borrowed(text), beyond_worth })
    }

    /// What it says.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Takes another value.
    pub(super) fn change(&mut self, value: &Value) {
        self.text = Cow::Owned(value.to_string());
        self.beyond_worth = attachments::bytes_beyond_worth(value);
    }
}

/// A request with its conversation.
pub(super) struct Document<'j> {
    pub(super) members: Members<'j>,
    pub(super) items: Vec<Item<'j>>,
    key: &'static str,
    /// Whether the conversation is a single text and no list.
    is_text: bool,
}

/// Why a request cannot be taken apart.
pub(super) enum Unreadable {
    NotJson(String),
    NoConversation,
}

impl<'j> Document<'j> {
    /// Takes a request apart. A conversation that is a single text, as Responses allows, is one
    /// item.
    pub(super) fn read(body: &'j [u8], api: Api) -> Result<Self, Unreadable> {
        let key = api.conversation_key();
        let not_json = |error: serde_json::Error| Unreadable::NotJson(error.to_string());
        let members: Members<'j> = serde_json::from_slice(body).map_err(not_json)?;
        let conversation =
            members.0.iter().find(|(name, _)| name == key).ok_or(Unreadable::NoConversation)?;
        let is_text = api == Api::Responses && conversation.1.get().starts_with('"');
        let items: Vec<&'j RawValue> = if is_text {
            vec![conversation.1]
        } else {
            serde_json::from_str(conversation.1.get()).map_err(|_| Unreadable::NoConversation)?
        };
        let item = |raw: &'j RawValue| Item::read(raw.get()).map_err(not_json);
        let items = items.into_iter().map(item).collect::<Result<_, Unreadable>>()?;
        Ok(Self { members, items, key, is_text })
    }

    /// A member beside the conversation.
    pub(super) fn member(&self, name: &str) -> Option<Value> {
        let (_, raw) = self.members.0.iter().find(|(key, _)| key == name)?;
        serde_json::from_str(raw.get()).ok()
    }

    /// How many bytes everything beside the conversation has.
    pub(super) fn bytes_beside(&self) -> usize {
        let beside = self.members.0.iter().filter(|(name, _)| name != self.key);
        beside.map(|(name, raw)| name.len() + raw.get().len() + 4).sum()
    }

    /// Puts the request together again, without the items of which `keep` is false, and with these
    /// members instead of its own.
    pub(super) fn write(&self, keep: &[bool], replaced: &[(&str, Value)]) -> Vec<u8> {
        let mut text = String::from("{");
        for (n, (name, raw)) in self.members.0.iter().enumerate() {
            if n > 0 {
                text.push(',');
            }
            text.push_str(&Value::from(name.as_ref()).to_string());
            text.push(':');
            if name == self.key {
                let kept = self.items.iter().zip(keep).filter(|(_, keep)| **keep);
                let kept: Vec<&str> = kept.map(|(item, _)| item.text.as_ref()).collect();
                text.push_str(if self.is_text { "" } else { "[" });
                text.push_str(&kept.join(","));
                text.push_str(if self.is_text { "" } else { "]" });
            } else if let Some((_, value)) = replaced.iter().find(|(key, _)| key == name) {
                text.push_str(&value.to_string());
            } else {
                text.push_str(raw.get());
            }
        }
        text.push('}');
        text.into_bytes()
    }
}
