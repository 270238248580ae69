package guest

import "github.com/hookhost/hookhost/abi"

// Error is a code that an imported function returned.
type Error abi.Code

// The errors. They are comparable: err == guest.ErrUnavailable.
const (
	ErrNotFound      = Error(abi.NotFound)
	ErrNotGranted    = Error(abi.NotGranted)
	ErrUnavailable   = Error(abi.Unavailable)
	ErrBadArgument   = Error(abi.BadArgument)
	ErrNotAtThisHook = Error(abi.NotAtThisHook)
	ErrOverLimit     = Error(abi.OverLimit)
	ErrWrongType     = Error(abi.WrongType)
)

func (e Error) Error() string { return abi.CodeName(abi.Code(e)) }

// check makes an error of what an imported function returned.
func check(code int32) error {
	if code < 0 {
		return Error(code)
	}
	return nil
}
