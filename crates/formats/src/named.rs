//! Enums whose variants have names.

/// Declares an enum from a table of its variants and their names. It gets `ALL`, the variants in this order, and
/// `name`.
#[macro_export]
macro_rules! named_enum {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name { $($(#[$doc])* $variant,)* }

        impl $name {
            /// Every variant.
            $vis const ALL: [$name; [$($text),*].len()] = [$($name::$variant),*];

            /// The name by which users and other programs know it.
            $vis const fn name(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }
        }
    };
}
