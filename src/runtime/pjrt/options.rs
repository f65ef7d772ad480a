//! How a program is compiled, in the protocol buffer that XLA takes.
//!
//! In come [`CompileOptions`]; out go the bytes of a `CompileOptionsProto`.
//! Never true here: several replicas or partitions of one program.

/// A value of a named option or property.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// An integer.
    Int(i64),
    /// A list of integers.
    Ints(Vec<i64>),
    /// A number in single precision.
    Float(f32),
    /// A truth value.
    Bool(bool),
}

/// How a program is compiled.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CompileOptions {
    /// The id of the device that will run it; the plugin's first if none.
    pub device: Option<i32>,
    /// XLA's own flags by name, such as `xla_cpu_enable_fast_math`.
    pub flags: Vec<(String, Flag)>,
}

/// A value of one of XLA's flags.
#[derive(Debug, Clone, PartialEq)]
pub enum Flag {
    /// Text, or the name of an enumeration's case.
    Text(String),
    /// A truth value.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
}

impl CompileOptions {
    /// As `CompileOptionsProto` (`xla/pjrt/proto/compile_options.proto`).
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut build = Message::default();
        build.int(1, -1); // device_ordinal: the assignment below tells
        build.int(4, 1); // num_replicas
        build.int(5, 1); // num_partitions
        if let Some(device) = self.device {
            let mut computation = Message::default();
            computation.int(1, i64::from(device)); // replica_device_ids
            let mut assignment = Message::default();
            assignment.int(1, 1); // replica_count
            assignment.int(2, 1); // computation_count
            assignment.message(3, &computation); // computation_devices
            build.message(9, &assignment); // device_assignment
        }
        let mut options = Message::default();
        options.message(3, &build); // executable_build_options
        for (name, flag) in &self.flags {
            let mut value = Message::default();
            match flag {
                Flag::Text(text) => value.bytes(1, text.as_bytes()),
                Flag::Bool(bool) => value.int(2, i64::from(*bool)),
                Flag::Int(int) => value.int(3, *int),
                Flag::Float(float) => value.double(4, *float),
            }
            let mut entry = Message::default();
            entry.bytes(1, name.as_bytes());
            entry.message(2, &value);
            options.message(7, &entry); // env_option_overrides
        }
        options.0
    }
}

/// A message in the wire format of protocol buffers.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn int(&mut self, field: u64, number: i64) {
        self.varint(field << 3);
        // A negative number has ten bytes, as two's complement of 64 bits.
        self.varint(number as u64);
    }

    fn double(&mut self, field: u64, number: f64) {
        self.varint(field << 3 | 1);
        self.0.extend(number.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn message(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_the_bytes_of_the_protocol() {
        let hex = |options: &CompileOptions| -> String {
            options.encode().iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(hex(&CompileOptions::default()), "1a 0f 08 ff ff ff ff ff ff ff ff ff 01 20 01 28 01");
        let second = CompileOptions { device: Some(300), ..CompileOptions::default() };
        assert_eq!(hex(&second), "1a 1a 08 ff ff ff ff ff ff ff ff ff 01 20 01 28 01 4a 09 08 01 10 01 1a 03 08 ac 02");
        let flag = CompileOptions { flags: vec![("ab".into(), Flag::Bool(true))], ..CompileOptions::default() };
        assert!(hex(&flag).ends_with(" 3a 08 0a 02 61 62 12 02 10 01"));
    }
}
