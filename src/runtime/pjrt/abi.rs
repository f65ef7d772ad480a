//! PJRT's C interface as declarations: which calls there are, in which order, and what each takes.
//!
//! In come and go nothing: these are types, from the published header `xla/pjrt/c/pjrt_c_api.h`.
//! Never true here: a call; and never a field in another place than in the header, which only ever appends.

use std::ffi::{c_char, c_void};
use std::ptr;

/// What a plugin reads as "absent" when all its bytes are zero.
pub trait Zero {
    /// All bytes zero.
    const ZERO: Self;
}

macro_rules! zero {
    ($($type:ty = $zero:expr),* $(,)?) => {
        $(impl Zero for $type { const ZERO: Self = $zero; })*
    };
}
zero!(usize = 0, i64 = 0, i32 = 0, u8 = 0);

impl<T> Zero for *const T {
    const ZERO: Self = ptr::null();
}

impl<T> Zero for *mut T {
    const ZERO: Self = ptr::null_mut();
}

impl<T> Zero for Option<T> {
    const ZERO: Self = None;
}

macro_rules! calls {
    ($($name:ident)*) => {
        /// The calls, in the order of the plugin's table.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(non_camel_case_types, dead_code, reason = "a table has all its rows, named as in the header")]
        pub enum Call { $($name),* }

        impl Call {
            /// As the header names it.
            pub fn name(self) -> &'static str {
                match self { $(Call::$name => concat!("PJRT_", stringify!($name))),* }
            }
        }
    };
}

calls! {
    Error_Destroy Error_Message Error_GetCode
    Plugin_Initialize Plugin_Attributes
    Event_Destroy Event_IsReady Event_Error Event_Await Event_OnReady
    Client_Create Client_Destroy Client_PlatformName Client_ProcessIndex Client_PlatformVersion Client_Devices
    Client_AddressableDevices Client_LookupDevice Client_LookupAddressableDevice Client_AddressableMemories
    Client_Compile Client_DefaultDeviceAssignment Client_BufferFromHostBuffer
    DeviceDescription_Id DeviceDescription_ProcessIndex DeviceDescription_Attributes DeviceDescription_Kind
    DeviceDescription_DebugString DeviceDescription_ToString
    Device_GetDescription Device_IsAddressable Device_LocalHardwareId Device_AddressableMemories
    Device_DefaultMemory Device_MemoryStats
    Memory_Id Memory_Kind Memory_DebugString Memory_ToString Memory_AddressableByDevices
    Executable_Destroy Executable_Name Executable_NumReplicas Executable_NumPartitions Executable_NumOutputs
    Executable_SizeOfGeneratedCodeInBytes Executable_GetCostAnalysis Executable_OutputMemoryKinds
    Executable_OptimizedProgram Executable_Serialize
    LoadedExecutable_Destroy LoadedExecutable_GetExecutable LoadedExecutable_AddressableDevices
    LoadedExecutable_Delete LoadedExecutable_IsDeleted LoadedExecutable_Execute Executable_DeserializeAndLoad
    LoadedExecutable_Fingerprint
    Buffer_Destroy Buffer_ElementType Buffer_Dimensions Buffer_UnpaddedDimensions Buffer_DynamicDimensionIndices
    Buffer_GetMemoryLayout Buffer_OnDeviceSizeInBytes Buffer_Device Buffer_Memory Buffer_Delete Buffer_IsDeleted
    Buffer_CopyToDevice Buffer_ToHostBuffer Buffer_IsOnCpu Buffer_ReadyEvent Buffer_UnsafePointer
    Buffer_IncreaseExternalReferenceCount Buffer_DecreaseExternalReferenceCount
    Buffer_OpaqueDeviceMemoryDataPointer
    CopyToDeviceStream_Destroy CopyToDeviceStream_AddChunk CopyToDeviceStream_TotalBytes
    CopyToDeviceStream_GranuleSize CopyToDeviceStream_CurrentBytes
    TopologyDescription_Create TopologyDescription_Destroy TopologyDescription_PlatformName
    TopologyDescription_PlatformVersion TopologyDescription_GetDeviceDescriptions TopologyDescription_Serialize
    TopologyDescription_Attributes
    Compile
    Executable_OutputElementTypes Executable_OutputDimensions
    Buffer_CopyToMemory Client_CreateViewOfDeviceBuffer Executable_Fingerprint Client_TopologyDescription
    Executable_GetCompiledMemoryStats
}

/// The head of a plugin's table; pointers to functions follow it.
#[repr(C)]
pub struct Api {
    pub struct_size: usize,
    pub extensions: *const c_void,
    pub version: ApiVersion,
}

/// The version of the interface that a plugin was made for.
#[repr(C)]
pub struct ApiVersion {
    pub struct_size: usize,
    pub extensions: *const c_void,
    pub major: i32,
    pub minor: i32,
}

/// Something of the plugin's that is only ever pointed to.
pub type Opaque = c_void;

macro_rules! structs {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty),* $(,)? })*) => {
        $(
            $(#[$doc])*
            #[repr(C)]
            pub struct $name {
                pub struct_size: usize,
                pub extensions: *const c_void,
                $(pub $field: $type,)*
            }

            impl Zero for $name {
                const ZERO: Self = $name {
                    struct_size: size_of::<$name>(),
                    extensions: ptr::null(),
                    $($field: <$type as Zero>::ZERO,)*
                };
            }

            impl Args for $name {
                fn set_size(&mut self, bytes: usize) {
                    self.struct_size = bytes;
                }
            }
        )*
    };
}

/// What a call takes: it begins with its own size, by which a plugin sees which fields the caller knows.
pub trait Args: Zero {
    fn set_size(&mut self, bytes: usize);
}

structs! {
    /// `PJRT_Plugin_Initialize`
    Nothing {}
    /// All calls that take an object and give nothing, or that end it.
    Object { object: *mut Opaque }
    /// All calls that take an object and give another.
    ObjectOf { object: *mut Opaque, other: *mut Opaque }
    /// All calls that take an object and give text, which lives as long as the object.
    Text { object: *mut Opaque, text: *const c_char, len: usize }
    /// All calls that take an object and give a 32-bit integer (an enumeration's case among them).
    Int { object: *mut Opaque, int: i32 }
    /// All calls that take an object and give a number of things.
    Count { object: *mut Opaque, count: usize }
    /// All calls that take an object and give yes or no.
    Truth { object: *mut Opaque, truth: Bool }
    /// All calls that take an object and give a list of objects, which live as long as the object.
    Objects { object: *mut Opaque, list: *const *mut Opaque, len: usize }
    /// `PJRT_Plugin_Attributes`
    PluginAttributes { list: *const NamedValue, len: usize }
    /// `PJRT_Client_Create`
    ClientCreate {
        options: *const NamedValue,
        options_len: usize,
        get: Option<Unused>,
        get_arg: *mut Opaque,
        put: Option<Unused>,
        put_arg: *mut Opaque,
        client: *mut Opaque,
        try_get: Option<Unused>,
        try_get_arg: *mut Opaque,
    }
    /// `PJRT_Device_MemoryStats`
    DeviceMemoryStats {
        device: *mut Opaque,
        bytes_in_use: i64,
        peak_bytes_in_use: i64,
        peak_bytes_in_use_is_set: Bool,
        num_allocs: i64,
        num_allocs_is_set: Bool,
        largest_alloc_size: i64,
        largest_alloc_size_is_set: Bool,
        bytes_limit: i64,
        bytes_limit_is_set: Bool,
    }
    /// A program in some format.
    Program { code: *const c_char, code_len: usize, format: *const c_char, format_len: usize }
    /// `PJRT_Client_Compile`
    ClientCompile {
        client: *mut Opaque,
        program: *const Program,
        options: *const c_char,
        options_len: usize,
        executable: *mut Opaque,
    }
    /// `PJRT_Compile`
    TopologyCompile {
        topology: *mut Opaque,
        program: *const Program,
        options: *const c_char,
        options_len: usize,
        client: *mut Opaque,
        executable: *mut Opaque,
    }
    /// `PJRT_TopologyDescription_Create`
    TopologyCreate {
        name: *const c_char,
        name_len: usize,
        options: *const NamedValue,
        options_len: usize,
        topology: *mut Opaque,
    }
    /// `PJRT_Executable_DeserializeAndLoad`
    Deserialize {
        client: *mut Opaque,
        bytes: *const c_char,
        len: usize,
        executable: *mut Opaque,
        options: *const c_char,
        options_len: usize,
    }
    /// `PJRT_Executable_Serialize`
    Serialize {
        executable: *mut Opaque,
        bytes: *const c_char,
        len: usize,
        owner: *mut Opaque,
        delete: Option<unsafe extern "C" fn(*mut Opaque)>,
    }
    /// `PJRT_Executable_GetCostAnalysis`
    CostAnalysis { executable: *mut Opaque, len: usize, list: *const NamedValue }
    /// `PJRT_Executable_GetCompiledMemoryStats`
    CompiledMemoryStats {
        executable: *mut Opaque,
        generated_code: i64,
        arguments: i64,
        outputs: i64,
        aliased: i64,
        temporaries: i64,
        host_generated_code: i64,
        host_arguments: i64,
        host_outputs: i64,
        host_aliased: i64,
        host_temporaries: i64,
    }
    /// `PJRT_Executable_OutputElementTypes`
    OutputElementTypes { executable: *mut Opaque, list: *const i32, len: usize }
    /// `PJRT_Executable_OutputDimensions`
    OutputDimensions { executable: *mut Opaque, outputs: usize, dims: *const i64, ranks: *const usize }
    /// What `PJRT_LoadedExecutable_Execute` is told besides the arguments.
    ExecuteOptions {
        send: *mut Opaque,
        receive: *mut Opaque,
        sends: usize,
        receives: usize,
        launch: i32,
        kept: *const i64,
        kept_len: usize,
    }
    /// `PJRT_LoadedExecutable_Execute`
    Execute {
        executable: *mut Opaque,
        options: *const ExecuteOptions,
        arguments: *const *const *mut Opaque,
        devices: usize,
        arguments_len: usize,
        outputs: *const *mut *mut Opaque,
        done: *mut *mut Opaque,
        device: *mut Opaque,
    }
    /// `PJRT_Client_BufferFromHostBuffer`
    BufferFromHost {
        client: *mut Opaque,
        data: *const c_void,
        element: i32,
        dims: *const i64,
        dims_len: usize,
        strides: *const i64,
        strides_len: usize,
        semantics: i32,
        device: *mut Opaque,
        memory: *mut Opaque,
        layout: *mut Opaque,
        done: *mut Opaque,
        buffer: *mut Opaque,
    }
    /// `PJRT_Buffer_Dimensions`
    BufferDimensions { buffer: *mut Opaque, dims: *const i64, len: usize }
    /// A layout by the order of its dimensions.
    Tiled {
        minor_to_major: *const i64,
        rank: usize,
        tile_dims: *const i64,
        tile_ranks: *const usize,
        tiles: usize,
    }
    /// Any layout; the header has a union here, whose largest member this is.
    Layout { tiled: Tiled, kind: i32 }
    /// `PJRT_Buffer_ToHostBuffer`
    BufferToHost {
        buffer: *mut Opaque,
        layout: *const Layout,
        data: *mut c_void,
        len: usize,
        done: *mut Opaque,
    }
}

/// C's `bool`, which a plugin writes: any byte is a good one, as it is not of Rust's.
pub type Bool = u8;

/// A callback that is never given.
pub type Unused = unsafe extern "C" fn(*mut Opaque);

/// `PJRT_HostBufferSemantics_kImmutableOnlyDuringCall`: the plugin copies before it returns.
pub const COPY_DURING_CALL: i32 = 0;

/// `PJRT_Buffer_MemoryLayout_Type_Tiled`
pub const TILED: i32 = 0;

/// A named value. It stands in arrays, so nothing may be added behind it.
#[repr(C)]
pub struct NamedValue {
    pub struct_size: usize,
    pub extensions: *const c_void,
    pub name: *const c_char,
    pub name_len: usize,
    pub kind: i32,
    pub value: NamedValueValue,
    pub len: usize,
}

/// Which of them, [`NamedValue::kind`] tells.
#[repr(C)]
pub union NamedValueValue {
    pub text: *const c_char,
    pub int: i64,
    pub ints: *const i64,
    pub float: f32,
    pub bool: Bool,
}

/// The cases of `PJRT_NamedValue_Type`.
pub mod named {
    pub const TEXT: i32 = 0;
    pub const INT: i32 = 1;
    pub const INTS: i32 = 2;
    pub const FLOAT: i32 = 3;
    pub const BOOL: i32 = 4;
}

/// The arguments of `PJRT_Error_Message` and `PJRT_Error_Destroy`, which give no error.
pub type Silent = unsafe extern "C" fn(*mut c_void);

/// All other calls.
pub type Fallible = unsafe extern "C" fn(*mut c_void) -> *mut Opaque;

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    /// Numbers that a C compiler gave for the header of PJRT 0.81 on x86-64.
    #[test]
    fn structs_are_laid_out_as_in_c() {
        assert_eq!(size_of::<Api>(), 40);
        assert_eq!(offset_of!(ClientCreate, client), 64);
        assert_eq!(offset_of!(DeviceMemoryStats, bytes_limit_is_set), 88);
        assert_eq!(offset_of!(ClientCompile, executable), 48);
        assert_eq!(offset_of!(TopologyCompile, executable), 56);
        assert_eq!(offset_of!(TopologyCreate, topology), 48);
        assert_eq!(offset_of!(Deserialize, executable), 40);
        assert_eq!(offset_of!(Serialize, delete), 48);
        assert_eq!(offset_of!(CompiledMemoryStats, host_temporaries), 96);
        assert_eq!(offset_of!(ExecuteOptions, kept_len), 64);
        assert_eq!(offset_of!(Execute, device), 72);
        assert_eq!(offset_of!(BufferFromHost, buffer), 112);
        assert_eq!(size_of::<Tiled>(), 56);
        assert_eq!(offset_of!(Layout, kind), 72);
        assert_eq!(offset_of!(BufferToHost, done), 48);
        assert_eq!(size_of::<NamedValue>(), 56);
    }

    #[test]
    fn calls_are_where_the_header_has_them() {
        assert_eq!(Call::Client_Create as usize, 10);
        assert_eq!(Call::LoadedExecutable_Execute as usize, 55);
        assert_eq!(Call::Buffer_Destroy as usize, 58);
        assert_eq!(Call::TopologyDescription_Create as usize, 82);
        assert_eq!(Call::Compile as usize, 89);
        assert_eq!(Call::Executable_GetCompiledMemoryStats as usize, 96);
        assert_eq!(Call::Executable_GetCompiledMemoryStats.name(), "PJRT_Executable_GetCompiledMemoryStats");
    }
}
